import FoundationEssentials

extension JSONFields {
    /// The payload of a message: `payload` or `payload_base64`, of which one is required.
    func payload() throws(Problem) -> [UInt8] {
        let text = try string("payload")
        let base64 = try string("payload_base64")
        switch (text, base64) {
        case (.some(let text), nil): return Array(text.utf8)
        case (nil, .some(let base64)):
            guard let data = Data(base64Encoded: base64) else {
                throw wrong(
                    "payload_base64", "is not base64",
                    fix: "Use the alphabet A-Z a-z 0-9 + / with padding, without line breaks.")
            }
            return Array(data)
        case (.some, .some):
            throw wrong(
                "payload", "and payload_base64 are both given", fix: "Give one of them.")
        case (nil, nil):
            throw wrong(
                "payload", "is missing",
                fix: "Add \"payload\" with a string (\"\" for none) or \"payload_base64\".")
        }
    }
}
