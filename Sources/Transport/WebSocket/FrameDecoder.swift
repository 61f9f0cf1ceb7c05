/// Takes MQTT's bytes out of a client's WebSocket frames, in place (RFC 6455, section 5).
///
/// ```
/// FIN, RSV1-3, opcode (4) | MASK, length (7) | length (0, 2 or 8 bytes) | mask (4 bytes) | payload
/// ```
/// The payloads of binary frames are one stream: a packet may be split over frames, and a frame may hold
/// several packets [MQTT-6.0.0-2]. So no payload is ever waited for; an incomplete header or control
/// frame is, which has at most ``mostUnread`` bytes.
public struct FrameDecoder: BitwiseCopyable, Sendable {
    /// The most bytes that one ``decode(_:mostPayload:control:)`` leaves unread when nothing is wrong.
    public static var mostUnread: Int { largestControlPayload + 5 }
    /// The largest payload of a control frame.
    public static var largestControlPayload: Int { 125 }
    /// The most control frames and empty frames in one read.
    public static var mostEmptyFrames: Int { 256 }

    /// Where the stream of frames is.
    private enum Message: UInt8, BitwiseCopyable {
        /// Between messages, or in the last frame of one.
        case complete
        /// Behind a frame, or in one, that others continue.
        case continues
    }

    private var mask = PayloadMask()
    /// Bytes of the current data frame's payload that have not been read.
    private var left: UInt32 = 0
    private var message = Message.complete

    public init() {}

    /// What a read held, besides data.
    public struct Result: Equatable, Sendable {
        /// Bytes of MQTT, now at the beginning of the buffer.
        public var produced = 0
        /// Bytes read; behind them is an incomplete header or control frame.
        public var consumed = 0
        /// The size of the payload of the last ping, in the buffer for control frames; `nil` without one.
        public var pingSize: Int?
        /// The code of a close frame, behind which nothing is read; ``WebSocketCloseCode/none`` if it has none.
        public var close: WebSocketCloseCode?
        /// The rule that the first unread byte breaks.
        public var flaw: WebSocketFlaw?
    }

    /// Reads frames. `mostPayload` bounds the payload of one frame; `control` has room for
    /// ``largestControlPayload`` bytes.
    @inline(__always)
    public mutating func decode(
        _ bytes: UnsafeMutableRawBufferPointer, mostPayload: Int, control: UnsafeMutableRawPointer
    ) -> Result {
        var result = Result()
        guard let base = bytes.baseAddress else { return result }
        var emptyFrames = 0
        while true {
            if left > 0 {
                let count = min(Int(left), bytes.count - result.consumed)
                guard count > 0 else { return result }
                mask.unmask(base + result.consumed, to: base + result.produced, count: count)
                result.consumed += count
                result.produced += count
                left -= UInt32(truncatingIfNeeded: count)
                continue
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[result.consumed...])
            do throws(WebSocketFlaw) {
                guard let header = try ClientFrameHeader(rest, isContinued: message == .continues)
                else {
                    return result
                }
                if header.isControl || header.payload == 0 {
                    emptyFrames += 1
                    guard emptyFrames <= Self.mostEmptyFrames else { throw .flood }
                }
                guard header.isControl else {
                    guard header.payload <= min(mostPayload, Int(UInt32.max)) else {
                        throw .frameTooLong
                    }
                    mask = header.mask
                    left = UInt32(truncatingIfNeeded: header.payload)
                    message = header.isFinal ? .complete : .continues
                    result.consumed += header.size
                    continue
                }
                guard rest.count >= header.size + header.payload else { return result }
                try take(header, base + result.consumed, control, &result)
                result.consumed += header.size + header.payload
                if result.close != nil { return result }
            } catch {
                result.flaw = error
                return result
            }
        }
    }

    /// Takes a complete control frame.
    private func take(
        _ header: ClientFrameHeader, _ frame: UnsafeMutableRawPointer,
        _ control: UnsafeMutableRawPointer,
        _ result: inout Result
    ) throws(WebSocketFlaw) {
        // A pong that nobody asked for needs no answer (section 5.5.3).
        guard header.opcode != .pong else { return }
        var mask = header.mask
        guard header.opcode == .close else {
            mask.unmask(frame + header.size, to: control, count: header.payload)
            result.pingSize = header.payload
            return
        }
        let payload = frame + header.size
        mask.unmask(payload, to: payload, count: header.payload)
        result.close = try Self.closeCode(
            UnsafeRawBufferPointer(start: payload, count: header.payload))
    }

    /// The status code of a close frame with this payload, which a reason in UTF-8 may follow.
    private static func closeCode(
        _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketFlaw) -> WebSocketCloseCode {
        guard payload.count > 0 else { return .none }
        guard payload.count > 1 else { throw .closePayload }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw .closePayload }
        guard String(validating: payload[2...], as: UTF8.self) != nil else { throw .closeReason }
        return code
    }
}
