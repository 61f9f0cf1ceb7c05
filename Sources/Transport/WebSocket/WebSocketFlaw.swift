/// A rule of WebSocket (RFC 6455) that a peer has broken; the connection closes.
///
/// What is wrong with the request for the upgrade is answered by a response of HTTP, what is wrong with
/// a frame by a close frame. See ``answer``.
public enum WebSocketFlaw: UInt8, Error, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    // The request.
    case notHTTP
    case malformedRequest
    case headersTooLong
    case httpVersion
    case method
    case path
    case host
    case body
    case notUpgrade
    case version
    case key
    case origin
    case subProtocol
    case token
    case severalTokens
    // The frames.
    case reservedBits
    case reservedOpcode
    case textFrame
    case unmasked
    case continuation
    case interruptedMessage
    case fragmentedControl
    case longControl
    case longLengthForm
    case frameTooLong
    case closePayload
    case closeReason
    case flood

    /// How a flaw is told to the peer.
    public enum Answer: Hashable, Sendable {
        /// The status of an HTTP response.
        case response(status: Int)
        /// The status code of a close frame.
        case close(WebSocketCloseCode)
    }

    public var answer: Answer {
        switch self {
        case .notHTTP, .malformedRequest, .host, .body, .key, .subProtocol, .token, .severalTokens:
            .response(status: 400)
        case .origin: .response(status: 403)
        case .path: .response(status: 404)
        case .method: .response(status: 405)
        case .notUpgrade, .version: .response(status: 426)
        case .headersTooLong: .response(status: 431)
        case .httpVersion: .response(status: 505)
        case .reservedBits, .reservedOpcode, .unmasked, .continuation, .interruptedMessage,
            .fragmentedControl, .longControl, .longLengthForm, .closePayload:
            .close(.protocolError)
        case .textFrame: .close(.unsupportedData)
        case .closeReason: .close(.invalidText)
        case .flood: .close(.policyViolation)
        case .frameTooLong: .close(.tooLong)
        }
    }

    /// The flaw in words, for a log and for the response of HTTP.
    public var explanation: String {
        switch self {
        case .notHTTP:
            "what came is no request of HTTP; an MQTT client without WebSocket, or TLS, belongs on another listener"
        case .malformedRequest: "a request or header that does not keep to HTTP/1.1"
        case .headersTooLong:
            "more than \(UpgradeRequest.maximumSize) bytes or \(UpgradeRequest.mostHeaders) lines of headers"
        case .httpVersion: "a version of HTTP that is not 1.1"
        case .method: "a method that is not GET"
        case .path: "a path at which no MQTT is served"
        case .host: "no Host header, an empty one, or several"
        case .body: "a request with a body"
        case .notUpgrade: "a request without Upgrade: websocket and Connection: Upgrade"
        case .version: "a Sec-WebSocket-Version that is not 13"
        case .key: "no Sec-WebSocket-Key of 16 bytes in base64, or several"
        case .origin: "an Origin that the listener does not list"
        case .subProtocol: "no Sec-WebSocket-Protocol that names mqtt or mqttv3.1"
        case .token:
            "a bearer token that can be none: it is empty, encoded wrong, or has characters that no token has, or its Authorization is not Bearer"
        case .severalTokens: "several bearer tokens, or several Authorization headers"
        case .reservedBits: "a frame with reserved bits, which belong to extensions"
        case .reservedOpcode: "a frame of an unknown kind"
        case .textFrame: "a text frame; MQTT is sent in binary frames"
        case .unmasked: "a frame without a mask"
        case .continuation: "a continuation without a message that it continues"
        case .interruptedMessage: "a new message before the last fragment of another"
        case .fragmentedControl: "a control frame in fragments"
        case .longControl: "a control frame of more than 125 bytes"
        case .longLengthForm: "a length in more bytes than it needs"
        case .frameTooLong: "a frame that is longer than limits.max_packet"
        case .closePayload: "a close frame with half a status code, or one that nobody may send"
        case .closeReason: "a close frame whose reason is not UTF-8"
        case .flood:
            "more than \(FrameDecoder.mostEmptyFrames) frames without data in one read"
        }
    }
}

/// The status code of a close frame (RFC 6455, section 7.4).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static var normal: Self { Self(rawValue: 1_000) }
    public static var goingAway: Self { Self(rawValue: 1_001) }
    public static var protocolError: Self { Self(rawValue: 1_002) }
    public static var unsupportedData: Self { Self(rawValue: 1_003) }
    public static var invalidText: Self { Self(rawValue: 1_007) }
    public static var policyViolation: Self { Self(rawValue: 1_008) }
    public static var tooLong: Self { Self(rawValue: 1_009) }
    public static var internalError: Self { Self(rawValue: 1_011) }
    public static var tryAgainLater: Self { Self(rawValue: 1_013) }
    /// A close frame without a code; never in a frame itself.
    public static var none: Self { Self(rawValue: 1_005) }

    /// True for a code that a close frame may carry.
    public var isSendable: Bool {
        switch rawValue {
        case 1_000...1_003, 1_007...1_014, 3_000...4_999: true
        default: false
        }
    }
}
