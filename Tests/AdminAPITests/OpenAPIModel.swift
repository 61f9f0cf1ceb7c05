import PlainText
import RequestText
import Testing

@testable import AdminAPI

/// The parts of an OpenAPI document that tests read.
struct OpenAPIModel {
    let root: JSONValue

    init(_ text: String) throws {
        root = try JSONParser.parse(Array(text.utf8))
    }

    /// One method of a path.
    struct Operation {
        var method: String
        var path: String
        var content: JSONValue

        func parameters(in place: String) -> [JSONValue] {
            (content["parameters"]?.elements ?? []).filter { $0["in"]?.text == place }
        }

        func names(in place: String) -> [String] {
            parameters(in: place).compactMap { $0["name"]?.text }
        }

        /// The JSON schema of the answer with `status`.
        func answer(_ status: Int) -> JSONValue? {
            content["responses"]?["\(status)"]?["content"]?["application/json"]?["schema"]
        }
    }

    var operations: [Operation] {
        (root["paths"]?.members ?? []).flatMap { path in
            (path.value.members ?? []).map { method in
                Operation(
                    method: method.name.string.uppercased(), path: path.name.string,
                    content: method.value)
            }
        }
    }

    func schema(_ name: String) throws -> JSONValue {
        try #require(root["components"]?["schemas"]?[name], "there is no schema \(name)")
    }

    /// The places where `value` violates `schema`, by the keywords that the document uses for
    /// answers. A member that the schema does not name is a violation.
    func misfits(_ value: JSONValue, _ schema: JSONValue, at place: String) -> [String] {
        if let name = schema["$ref"]?.text?.split(separator: "/").last {
            guard let schema = try? self.schema(String(name)) else { return ["\(place): \(name)"] }
            return misfits(value, schema, at: place)
        }
        var misfits: [String] = []
        if let type = schema["type"]?.text, value.schemaType != type {
            misfits.append("\(place) is \(value.kindName), not \(type)")
        }
        if let allowed = schema["enum"]?.elements, !allowed.contains(value) {
            misfits.append("\(place) is none of its enum")
        }
        if let constant = schema["const"], constant != value {
            misfits.append("\(place) is not its const")
        }
        for name in schema["required"]?.elements ?? [] where value[name.text ?? ""] == nil {
            misfits.append("\(place) has no \(name.text ?? "")")
        }
        let isOpen = schema["properties"] == nil && schema["additionalProperties"] == nil
        for member in isOpen ? [] : value.members ?? [] {
            let inside = "\(place).\(member.name)"
            guard
                let schema = schema["properties"]?[member.name.string]
                    ?? schema["additionalProperties"]
            else {
                misfits.append("\(inside) is not described")
                continue
            }
            misfits += self.misfits(member.value, schema, at: inside)
        }
        if let items = schema["items"] {
            for element in value.elements ?? [] {
                misfits += self.misfits(element, items, at: "\(place)[]")
            }
        }
        return misfits
    }
}

extension JSONValue {
    subscript(name: String) -> JSONValue? { members?.first { $0.name == ForeignText(name) }?.value }

    var members: [JSONMember]? { if case .object(let members) = self { members } else { nil } }
    var elements: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
    var text: String? { if case .string(let text) = self { text.string } else { nil } }

    var integer: Int? {
        if case .number(let text) = self { Int(text) } else { nil }
    }

    /// The JSON Schema name of its type.
    fileprivate var schemaType: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .number(let text): text.contains(".") ? "number" : "integer"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }
}
