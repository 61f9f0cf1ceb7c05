import COpenAPI

/// The OpenAPI 3.1 document of `GET /v1/openapi.json`, which is Sources/COpenAPI/openapi.json.
///
/// It is written by hand rather than derived, so that a route cannot change its contract without a
/// change there; a test compares the document with the routes and their answers.
enum OpenAPIDocument {
    /// The document, with the version of this software (letters, digits and `.-+` only).
    static func text(version: String) -> String {
        String(cString: hermes_openapi_document()).replacing(
            "\"VERSION\"", with: "\"\(version)\"")
    }
}
