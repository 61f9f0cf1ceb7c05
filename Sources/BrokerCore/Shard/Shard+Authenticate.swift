import BrokerAPI
import MQTTCodec
import Structures

/// Between CONNECT and its session: passwords, and tokens in their place, are checked on other
/// threads.
extension Shard {
    /// `token` came in the request for WebSocket; empty when there is none.
    package mutating func authenticate(_ judged: JudgedConnect, _ token: UnsafeRawBufferPointer) {
        let handle = judged.handle
        if judged.provenUser != nil, !asksBeforeCertificates {
            openSession(judged)
            return
        }
        guard verifiesPasswords,
            judged.userName != nil || !token.isEmpty || judged.provenUser != nil
                // MQTT 5.0 allows a password, such as a token, without a user name.
                || judged.connect.password != nil
        else {
            // Where no login is checked, a user name is unproven, so the client is anonymous.
            guard allowsAnonymous[Int(connections[handle].listener)] else {
                refuseConnect(judged, .notAuthorized, .notAuthorized)
                return
            }
            openSession(judged)
            return
        }
        guard let password = Self.password(of: judged, token) else {
            refuseConnect(
                judged, .badUserNameOrPassword, .tokenRefused,
                detail: "its CONNECT has a password that is not the token of its request")
            return
        }
        // Argon2 takes tens of milliseconds, and a signature some hundred microseconds, on another
        // thread; the packet is kept meanwhile.
        connections[handle].machine.awaitPasswordCheck(
            HeldConnect(judged.packet, provenUser: judged.provenUser, pool: pool))
        authentications.append(
            AuthenticationRequest(
                connection: handle, origin: connections[handle].origin,
                userName: judged.claimedUserName ?? [],
                clientID: [UInt8](judged.clientID), password: password,
                certificateName: judged.provenUser.map { [UInt8]($0.name) }))
    }

    /// The password of a CONNECT, or the token in its place; `nil` when there are both and they
    /// differ. A client library that always sends a password sends an empty one, which is none.
    private static func password(
        of judged: JudgedConnect, _ token: UnsafeRawBufferPointer
    ) -> [UInt8]? {
        let password = judged.connect.password.map { [UInt8](judged.bytes[$0]) } ?? []
        guard !token.isEmpty else { return password }
        return password.isEmpty || password.elementsEqual(token) ? [UInt8](token) : nil
    }

    /// Takes the answer to an ``AuthenticationRequest``.
    public mutating func authenticated(_ handle: Handle, _ answer: LoginAnswer) {
        guard connections.isCurrent(handle),
            let held = connections[handle].machine.endPasswordCheck()
        else { return }
        defer { held.release(in: pool) }
        let judged = JudgedConnect(handle, held)
        switch answer {
        case .admitted(let login): admit(handle, held, login)
        case .wrongPassword:
            refuseConnect(judged, .badUserNameOrPassword, .badUserNameOrPassword)
        case .tokenRefused(let detail):
            refuseConnect(judged, .badUserNameOrPassword, .tokenRefused, detail: detail)
        case .denied(let detail):
            refuseConnect(judged, .badUserNameOrPassword, .badUserNameOrPassword, detail: detail)
        case .serviceUnavailable(let detail):
            refuseConnect(judged, .serverUnavailable, .loginServiceUnavailable, detail: detail)
        case .busy(let detail):
            refuseConnect(judged, .serverUnavailable, .authenticationBusy, detail: detail)
        }
    }

    private mutating func admit(_ handle: Handle, _ held: HeldConnect, _ login: Login) {
        logins.add(handle, login, now: context.now, wallClockMs: context.wallClockMs)
        guard let userName = login.userName else {
            let judged = JudgedConnect(handle, held)
            guard judged.userName?.isEmpty == false || judged.provenUser != nil else {
                refuseConnect(
                    judged, .badUserNameOrPassword, .tokenRefused,
                    detail: "neither its CONNECT nor what answers for its token names a user")
                return
            }
            // It may have been made while the password was checked.
            if let ban = ban(of: judged) {
                refuse(judged, by: ban)
            } else {
                openSession(judged)
            }
            return
        }
        userName.withUnsafeBytes { name in
            let judged = JudgedConnect(
                handle, held, provenUser: SessionUser(name: name, proof: .password))
            if let refusal = refusalOfNames(judged) {
                refuseConnect(judged, refusal.code, refusal.reason)
            } else if let ban = ban(of: judged) {
                // The token's user is known only now.
                refuse(judged, by: ban)
            } else {
                openSession(judged)
            }
        }
    }

    /// The user name of a CONNECT that is being checked, empty for one without; `nil` when none is.
    public func userNameBeingChecked(_ handle: Handle) -> [UInt8]? {
        guard connections.isCurrent(handle),
            let held = connections[handle].machine.checkedConnect
        else { return nil }
        return JudgedConnect(handle, held).claimedUserName ?? []
    }

    /// True when a login lets a client in as the user that its CONNECT names, or names none as it does.
    public func isClaimedUser(_ handle: Handle, _ login: Login) -> Bool {
        guard connections.isCurrent(handle),
            let held = connections[handle].machine.checkedConnect
        else { return false }
        let judged = JudgedConnect(handle, held)
        let claimed = judged.claimedUserName ?? []
        if let userName = login.userName { return userName == claimed }
        return judged.provenUser.map { claimed.elementsEqual($0.name) } ?? true
    }

    /// Refuses a CONNECT whose password would be checked, as if it were wrong: a stranger learns
    /// nothing from the code.
    public mutating func refuseLockedOut(_ handle: Handle, _ limit: Limit) {
        guard connections.isCurrent(handle),
            let held = connections[handle].machine.endPasswordCheck()
        else { return }
        defer { held.release(in: pool) }
        refuseConnect(JudgedConnect(handle, held), .badUserNameOrPassword, .lockedOut(limit))
    }
}
