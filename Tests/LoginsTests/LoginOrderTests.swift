import Logins
import Testing

@Suite("The order of the sources of logins")
struct LoginOrderTests {
    private static let token = Array("eyJhbGciOiJFUzI1NiJ9.e30.AAAA".utf8)
    private static let password = Array("secret".utf8)
    private static let all = LoginOrder(
        [.certificate, .jwt, .file, .http], inUse: [.jwt, .file, .http])

    /// The sources that are asked, each passing the login on.
    private func walk(
        _ order: LoginOrder, _ password: [UInt8], isNamed: Bool = false, isUser: Bool = false
    ) -> [LoginOrder.Source] {
        var asked: [LoginOrder.Source] = []
        var passed = 0
        while let step = order.step(
            for: password, byCertificate: isNamed, after: passed, isUser: { isUser })
        {
            asked.append(step.source)
            if step.place >= order.sources.count { break }
            passed = step.place + 1
        }
        return asked
    }

    @Test("each login is decided by the first source that knows it")
    func first() {
        #expect(walk(Self.all, Self.token) == [.jwt, .http, .file])
        #expect(walk(Self.all, Self.password) == [.http, .file])
        #expect(walk(Self.all, Self.password, isUser: true) == [.file, .http, .file])
        #expect(walk(Self.all, Self.password, isNamed: true) == [.certificate, .http, .file])
    }

    @Test("what is not set up is not asked, and without a file nobody decides about the unknown")
    func notInUse() {
        let order = LoginOrder([.certificate, .jwt, .file, .http], inUse: [.jwt])
        #expect(walk(order, Self.token) == [.jwt])
        #expect(walk(order, Self.password, isUser: true) == [])
        #expect(
            walk(LoginOrder([.http, .jwt], inUse: [.http, .jwt]), Self.token) == [.http, .jwt])
    }

    @Test("the password file is looked into only when its turn comes")
    func laziness() {
        var looks = 0
        let step = Self.all.step(for: Self.token, byCertificate: false) {
            looks += 1
            return true
        }
        #expect(step?.source == .jwt && step?.place == 1 && looks == 0)
    }

    @Test("a token decides by its signature, and where only tokens count no password is a guess")
    func guesses() {
        func isGuess(
            _ order: LoginOrder, _ password: [UInt8], isUser: Bool = false
        ) -> Bool {
            order.checksPassword(password, byCertificate: false, isUser: { isUser })
        }
        let tokensAlone = LoginOrder([.certificate, .jwt, .file, .http], inUse: [.jwt])
        #expect(!isGuess(tokensAlone, Self.password) && !isGuess(tokensAlone, Self.token))
        #expect(isGuess(Self.all, Self.password) && !isGuess(Self.all, Self.token))
        // What looks like a token is a user's password where the file is asked first.
        let fileFirst = LoginOrder([.file, .jwt, .http, .certificate], inUse: [.file, .jwt])
        #expect(isGuess(fileFirst, Self.token, isUser: true))
        #expect(!isGuess(fileFirst, Self.token))
        #expect(isGuess(LoginOrder([.http, .jwt], inUse: [.http, .jwt]), Self.token))
    }

    @Test("sources that were passed over say why, if they are set up")
    func reasons() {
        let order = LoginOrder([.jwt, .certificate, .file, .http], inUse: [.jwt, .file, .http])
        #expect(order.passed(0..<9).map(\.source) == [.jwt, .file])
        #expect(order.passed(1..<2).isEmpty && order.passed(4..<4).isEmpty)
    }
}
