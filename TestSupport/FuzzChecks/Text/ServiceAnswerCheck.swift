import Credentials
import Logins
import PlainText
import RequestText

/// Any bytes are an answer of a company's service about a login, or none; a question is JSON of
/// exactly what is asked.
///
/// The first byte chooses what the rest is: an answer, or the parts of a question. An answer that
/// is one says what its JSON says, within bounds; a complaint and a reason print nothing that acts
/// on a terminal.
enum ServiceAnswerCheck {
    /// The time of all checks, in UNIX seconds.
    private static let now: Int64 = 1_800_000_000

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        if program.byte() & 1 == 0 {
            try checkAnswer(program.rest(), trace)
        } else {
            try checkQuestion(&program, trace)
        }
    }

    // MARK: Answers

    private static func checkAnswer(
        _ document: [UInt8], _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let received: ReceivedAnswer
        do throws(MalformedAnswer) {
            received = try ReceivedAnswer(document)
        } catch {
            trace?(error.complaint)
            try PrintedText.check(error.complaint)
            return
        }
        trace?("\(received)")
        guard case .object(let list)? = try? JSONParser.parse(document) else {
            throw CheckFailure("an answer that is no object: \(received)")
        }
        var members: [ForeignText: JSONValue] = [:]
        for member in list { members[member.name] = member.value }
        try CheckFailure.unless(
            received.remember == seconds(members["remember_s"]).map { .seconds($0) },
            "it is remembered for another time: \(received)")
        if let remember = received.remember {
            try CheckFailure.unless(
                .zero ... .seconds(31_536_000) ~= remember, "it is remembered for \(remember)")
        }
        switch received.answer {
        case .allowed(let login): try check(login, received, members, document.count)
        case .denied(let reason):
            try CheckFailure.unless(
                members["result"] == .string("deny"), "it denies by itself: \(received)")
            try CheckFailure.unless(
                (reason != nil) == (members["reason"] != nil), "another reason: \(received)")
            try PrintedText.check(reason ?? "")
            try CheckFailure.unless(
                reason?.unicodeScalars.count ?? 0 <= ReceivedAnswer.longestReason,
                "a long reason: \(received)")
        case .ignored:
            try CheckFailure.unless(
                members["result"] == .string("ignore"), "it ignores by itself: \(received)")
        case .ended: throw CheckFailure("it has ended before anybody looked at the time")
        }
    }

    private static func check(
        _ login: ServiceLogin, _ received: ReceivedAnswer, _ members: [ForeignText: JSONValue],
        _ size: Int
    ) throws(CheckFailure) {
        try CheckFailure.unless(
            members["result"] == .string("allow"), "it lets in by itself: \(received)")
        try CheckFailure.unless(
            login.userName.map { .string(ForeignText($0)) } == members["user_name"]
                && login.expiresAt == seconds(members["expires_at"])
                && login.isSuperuser == (members["superuser"] == .bool(true))
                && login.narrows == (members["publish"] != nil || members["subscribe"] != nil)
                && (login.allowance != nil) == (login.narrows || login.isSuperuser),
            "it says something else: \(received)")
        let name = login.userName.map { Array($0.utf8) }
        try CheckFailure.unless(
            name.map {
                1...ReceivedAnswer.longestUserName ~= $0.count && $0.allSatisfy { $0 >= 0x20 }
            } ?? true, "a user name that nobody has: \(received)")
        try CheckFailure.unless(
            login.allowance?.byteCount ?? 0 <= 64 + 5 * size,
            "\(login.allowance?.byteCount ?? 0) bytes of topics out of \(size)")
        let hasEnded =
            switch received.answer.held(to: now) {
            case .ended: true
            case .allowed, .denied, .ignored: false
            }
        try CheckFailure.unless(
            hasEnded == (login.expiresAt.map { $0 <= now } ?? false),
            "it ends at another time: \(received)")
    }

    /// A number as whole seconds.
    private static func seconds(_ value: JSONValue?) -> Int64? {
        guard case .number(let text)? = value, let number = Double(text) else { return nil }
        return Int64(exactly: number.rounded(.towardZero))
    }

    // MARK: Questions

    private static func checkQuestion(
        _ program: inout ByteProgram, _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let isNamed = program.byte() & 1 == 1
        var parts: [[UInt8]] = []
        for _ in 0..<3 { parts.append(program.bytes(Int(program.byte() & 0x3F))) }
        // MQTT's strings and the names of certificates are UTF-8; a password need not be.
        let texts = parts.map { ForeignText(String(decoding: $0, as: UTF8.self)) }
        let password = program.rest()
        let question = LoginQuestion(
            userName: Array(texts[0].utf8), clientID: Array(texts[1].utf8),
            password: password, certificateName: isNamed ? Array(texts[2].utf8) : nil,
            address: "192.0.2.7")
        trace?(String(decoding: question.body, as: UTF8.self))
        let text = String(validating: password, as: UTF8.self)
        var expected = [
            JSONMember(name: "user_name", value: .string(texts[0])),
            JSONMember(name: "client_id", value: .string(texts[1])),
            text.map { JSONMember(name: "password", value: .string(ForeignText($0))) }
                ?? JSONMember(
                    name: "password_base64", value: .string(ForeignText(base64(password)))),
        ]
        if isNamed {
            expected.append(JSONMember(name: "certificate_name", value: .string(texts[2])))
        }
        expected.append(JSONMember(name: "address", value: .string("192.0.2.7")))
        let found = try? JSONParser.parse(question.body)
        try CheckFailure.unless(
            found == .object(expected),
            "another question: \(String(decoding: question.body, as: UTF8.self))")
        var others = [question, question, question, question]
        others[0].password.append(0)
        others[1].certificateName = isNamed ? nil : []
        // The same bytes, with another place where the user name ends.
        if let moved = others[2].userName.popLast() {
            others[2].clientID.insert(moved, at: 0)
        } else {
            others[2].userName = [0]
        }
        others[3].address = "192.0.2.70"
        let digest = question.digest([7])
        try CheckFailure.unless(
            digest == question.digest([7]) && others.allSatisfy { $0.digest([7]) != digest },
            "another question has the same digest")
    }

    /// Base 64 as of RFC 4648, bit by bit.
    private static func base64(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var bits = bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
        while bits.count % 6 != 0 { bits.append(0) }
        var text = ""
        for start in stride(from: 0, to: bits.count, by: 6) {
            text.append(letters[bits[start..<start + 6].reduce(0) { $0 << 1 | Int($1) }])
        }
        return text + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }
}
