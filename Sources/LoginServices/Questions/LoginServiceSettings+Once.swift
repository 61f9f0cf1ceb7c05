import Logins

extension LoginServiceSettings {
    /// Asks the service once, for a command; nothing is remembered.
    package func askOnce(
        _ question: LoginQuestion, _ files: LoginServiceFiles, wallClock: Int64
    ) async -> LoginService.Outcome {
        let transport = HTTPLoginTransport(self, files, connections: 1)
        defer { transport.close() }
        switch await transport.send(question.body, self) {
        case .failure(let failure): return .unavailable(reason: failure.reason)
        case .success(let document):
            do throws(MalformedAnswer) {
                return .answered(try ReceivedAnswer(document).answer.held(to: wallClock))
            } catch {
                return .unavailable(reason: error.complaint)
            }
        }
    }
}
