extension ValueFormat where Value == String {
    /// The longest path of a request, far below what one request may hold.
    private static var longestPath: Int { 255 }

    /// The path of a request of HTTP, without a query.
    static var requestPath: Self {
        Self(
            expectation: "a path such as /mqtt",
            read: { (text: String) throws(RefusedValue) -> String in
                guard text.first == "/" else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) does not begin with /",
                        cure: "Give a path such as /mqtt.")
                }
                let allowed = text.utf8.allSatisfy {
                    $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
                }
                guard allowed else {
                    throw RefusedValue(
                        complaint:
                            "\(quoted(text)) holds a character that no path has as it is: a blank, ?, # or one beyond ASCII",
                        cure:
                            "Give a path such as /mqtt, or write the character as % and two digits."
                    )
                }
                guard text.utf8.count <= longestPath else {
                    throw RefusedValue(
                        complaint: "it is \(text.utf8.count) bytes long",
                        cure: "Give a path of at most \(longestPath) bytes, such as /mqtt.")
                }
                return text
            },
            write: { $0 }
        )
    }
}

extension ValueFormat where Value == [String] {
    private static var mostOrigins: Int { 100 }

    /// Origins of web pages, as a YAML list or separated by commas.
    static var origins: Self {
        Self(
            expectation:
                "an origin such as https://app.example.org, or several with commas between them",
            absent: [],
            read: { (text: String) throws(RefusedValue) -> [String] in
                var origins: [String] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    origins.append(try origin(String(part.trimmingPrefix { $0 == " " })))
                }
                guard origins.count <= mostOrigins else {
                    throw RefusedValue(
                        complaint: "there are \(origins.count) origins",
                        cure: "Give at most \(mostOrigins).")
                }
                return origins
            },
            write: { $0.joined(separator: ",") }
        )
    }

    /// An origin as browsers send it (RFC 6454, section 6.2): scheme and host in lower case, and the port
    /// unless it is the scheme's own.
    private static func origin(_ text: String) throws(RefusedValue) -> String {
        let example = "Give an origin such as https://app.example.org or http://localhost:3000."
        guard let separator = text.firstRange(of: "://"), separator.lowerBound > text.startIndex
        else {
            throw RefusedValue(
                complaint: "\(quoted(text)) is no origin, which begins with https:// or http://",
                cure: example)
        }
        let (scheme, rest) = (text[..<separator.lowerBound], text[separator.upperBound...])
        guard !rest.contains(where: { "/?#@".contains($0) }) else {
            throw RefusedValue(
                complaint: "\(quoted(text)) has more than scheme, host and port",
                cure: "An origin has no path, not even /. \(example)")
        }
        let isASCII = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "*") }
        guard !rest.isEmpty, isASCII else {
            throw RefusedValue(
                complaint: "\(quoted(text)) names no host as browsers send it",
                cure: "Write every host in full, and one beyond ASCII as xn--…. \(example)")
        }
        let usualPort = [("http", ":80"), ("https", ":443")].first { scheme.lowercased() == $0.0 }
        if let port = usualPort?.1, rest.hasSuffix(port) {
            throw RefusedValue(
                complaint: "\(quoted(text)) names the port that browsers leave out",
                cure: "Leave \(port) away.")
        }
        return text.lowercased()
    }
}
