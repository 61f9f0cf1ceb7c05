import BrokerAPI
import COperatorPage
import Hummingbird

/// The operator's page, from Sources/COperatorPage.
///
/// Its files need no token, because they are the same for every broker, and only their policy names
/// the ports of WebSocket; what the page shows comes from the API, with the token that the operator
/// types, or from a listener of WebSocket.
struct PageRoutes: Sendable {
    /// False leaves the page out; its paths then say how to switch it on.
    let isServed: Bool
    /// The listeners of MQTT clients; the page shows live messages by those of WebSocket.
    let listeners: [ListenerModel]

    /// `GET /ui`, `/ui/`, `/ui/page.css` and the scripts.
    var routes: [Route] {
        [
            file("/ui", "text/html; charset=utf-8", hermes_page_document()),
            file("/ui/", "text/html; charset=utf-8", hermes_page_document()),
            file("/ui/page.css", "text/css; charset=utf-8", hermes_page_style()),
            script("/ui/page.js", hermes_page_script()),
            script("/ui/tail.js", hermes_page_tail_script()),
            script("/ui/mqtt.js", hermes_page_mqtt_script()),
            script("/ui/text.js", hermes_page_text_script()),
        ]
    }

    private func script(_ path: String, _ text: UnsafePointer<CChar>) -> Route {
        file(path, "text/javascript; charset=utf-8", text)
    }

    private func file(
        _ path: String, _ type: String, _ text: UnsafePointer<CChar>
    ) -> Route {
        let document = ByteBuffer(string: String(cString: text))
        return Route(method: .get, path: path, access: .open) { [self] request throws(Problem) in
            guard isServed else { throw Self.switchedOff }
            var headers = Self.headers
            headers[.contentSecurityPolicy] = policy(at: request.hostName)
            headers[.contentType] = type
            return Response(
                status: .ok, headers: headers, body: ResponseBody(byteBuffer: document))
        }
    }

    private static let switchedOff = Problem(
        .routeNotFound, "The operator's page is switched off here.",
        fix: "Set admin.page: on and start the broker again; with auto it is served on loopback "
            + "only.")

    /// The Content-Security-Policy of the files under this name.
    ///
    /// The page may load its own files, call its own API and connect to the broker's listeners of
    /// WebSocket, and nothing else: no other page may hold it in a frame, nothing in it runs that is
    /// not one of its scripts, and it sends nothing elsewhere.
    ///
    /// - Parameter hostName: The name under which the browser asked for the page.
    /// - Returns: The value of the header.
    func policy(at hostName: String) -> String {
        let connections = (["'self'"] + sources(at: hostName)).joined(separator: " ")
        return "default-src 'none'; script-src 'self'; style-src 'self'; "
            + "connect-src \(connections); frame-ancestors 'none'; base-uri 'none'; "
            + "form-action 'none'"
    }

    /// The listeners of WebSocket as sources of a policy, such as `wss://broker.example.org:8083`.
    /// None at a host that a policy cannot name: an IPv6 address (CSP 3, section 2.3.1).
    private func sources(at hostName: String) -> [String] {
        let isNameable = hostName.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard isNameable, hostName.utf8.count <= Self.longestHostName else { return [] }
        return listeners.compactMap { listener in
            guard listener.webSocket != nil,
                let colon = listener.address.lastIndex(of: ":")
            else { return nil }
            return "\(listener.tls ? "wss" : "ws")://\(hostName)\(listener.address[colon...])"
        }
    }

    /// Bytes of a name in the DNS (RFC 1035, section 2.3.4).
    private static let longestHostName = 253

    private static let headers: HTTPFields = [
        .crossOriginResourcePolicy: "same-origin",
        name("Permissions-Policy"): "camera=(), geolocation=(), microphone=()",
        name("Referrer-Policy"): "no-referrer",
    ]

    private static func name(_ text: String) -> HTTPFields.Element.Name {
        guard let name = HTTPFields.Element.Name(text) else {
            preconditionFailure("\(text) is no name of a header")
        }
        return name
    }
}
