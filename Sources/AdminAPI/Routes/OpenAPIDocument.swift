import COpenAPI

/// The OpenAPI 3.1 document of `GET /v1/openapi.json`, from Sources/COpenAPI/openapi.json.
///
/// It is written by hand, so that a route cannot change its contract unnoticed. A test compares it
/// with the routes and their answers.
enum OpenAPIDocument {
    /// The document with this version of Hermes (letters, digits and `.-+` only).
    static func text(version: String) -> String {
        String(cString: hermes_openapi_document()).replacing(
            "\"VERSION\"", with: "\"\(version)\"")
    }
}
