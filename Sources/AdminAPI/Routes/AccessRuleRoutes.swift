import BrokerAPI
import Hummingbird
import PlainText

/// The access rules, as text.
struct AccessRuleRoutes: Sendable {
    /// `nil` without `acl_file`.
    let file: AccessRulesFile?

    /// `GET` and `PUT /v1/access-rules`.
    var routes: [Route] { [show, replace] }

    private var show: Route {
        Route(method: .get, path: "/v1/access-rules", access: .admin) {
            _ throws(Problem) in
            let text = try await existingFile().text()
            return Response(
                status: .ok,
                headers: [.contentType: "text/plain; charset=utf-8", .eTag: text.tag],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: text.bytes)))
        }
    }

    private var replace: Route {
        var route = Route(
            method: .put, path: "/v1/access-rules", access: .admin, body: .raw
        ) { request throws(Problem) in
            let (text, count) = try await existingFile().replace(
                with: request.body, ifMatch: request.ifMatch.map(Self.tags))
            var response = try Response.json(AccessRulesSet(rules: count, etag: text.tag))
            response.headers[.eTag] = text.tag
            return response
        }
        route.honoursIfMatch = true
        return route
    }

    /// The entity tags of the header If-Match. Ours hold no comma.
    private static func tags(_ header: String) -> [ForeignText] {
        header.parts(separator: ",", omittingEmpty: true).map { tag in
            let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
            return ForeignText(Substring(tag.utf8.drop(while: isBlank).prefix { !isBlank($0) }))
        }
    }

    private func existingFile() throws(Problem) -> AccessRulesFile {
        guard let file else {
            throw Problem(
                .noAccessFile,
                "This broker has no access rules: every client may publish and subscribe to "
                    + "everything.",
                fix: "Set acl_file to a file with rules, and start it again; an empty one denies "
                    + "everything.")
        }
        return file
    }
}
