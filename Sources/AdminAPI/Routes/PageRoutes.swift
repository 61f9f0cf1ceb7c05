import COperatorPage
import Hummingbird

/// The operator's page, from Sources/COperatorPage.
///
/// Its files need no token, because they are the same for every broker; what the page shows comes
/// from the API, with the token that the operator types.
struct PageRoutes: Sendable {
    /// False leaves the page out; its paths then say how to switch it on.
    let isServed: Bool

    /// `GET /ui`, `/ui/`, `/ui/page.css` and `/ui/page.js`.
    var routes: [Route] {
        [
            file("/ui", "text/html; charset=utf-8", hermes_page_document()),
            file("/ui/", "text/html; charset=utf-8", hermes_page_document()),
            file("/ui/page.css", "text/css; charset=utf-8", hermes_page_style()),
            file("/ui/page.js", "text/javascript; charset=utf-8", hermes_page_script()),
        ]
    }

    private func file(
        _ path: String, _ type: String, _ text: UnsafePointer<CChar>
    ) -> Route {
        let document = ByteBuffer(string: String(cString: text))
        return Route(method: .get, path: path, access: .open) { [isServed] _ throws(Problem) in
            guard isServed else { throw Self.switchedOff }
            var headers = Self.headers
            headers[.contentType] = type
            return Response(
                status: .ok, headers: headers, body: ResponseBody(byteBuffer: document))
        }
    }

    private static let switchedOff = Problem(
        .routeNotFound, "The operator's page is switched off here.",
        fix: "Set admin.page: on and start the broker again; with auto it is served on loopback "
            + "only.")

    /// The page may load its own files and call its own API, and nothing else: no other page may
    /// hold it in a frame, nothing in it runs that is not page.js, and it sends nothing elsewhere.
    static let headers: HTTPFields = [
        .contentSecurityPolicy: "default-src 'none'; script-src 'self'; style-src 'self'; "
            + "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
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
