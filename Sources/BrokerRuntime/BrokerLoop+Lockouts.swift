import Addresses
import BrokerAPI
import BrokerCore
import BrokerFeatures
import Structures
import Transport

/// Locks out who gives too many wrong passwords.
extension BrokerLoop {
    /// True, with the CONNECT refused, when its user is locked out; its password is not checked.
    /// Locks are for passwords: what a signature decides is let through, whatever its neighbours
    /// behind the same address have guessed.
    mutating func refusesLockedOut(_ request: AuthenticationRequest) -> Bool {
        guard !lockouts.isEmpty, request.mayBeGuess else { return false }
        let peer = reactor.peerAddress(of: request.connection)
        guard let limit = lockouts.lock(of: request.userName, from: peer, at: shard.now) else {
            return false
        }
        guard mayBeGuess(request) else { return false }
        shard.refuseLockedOut(request.connection, limit)
        return true
    }

    /// Takes the answer to a login's check: counts it, and passes it on to the shard. A token that is
    /// refused counts for nothing, since it cannot be guessed, and clients repeat one that has expired.
    mutating func finishCheck(_ handle: Handle, _ answer: LoginAnswer, mayBeGuess: Bool) {
        asked.end(handle)
        if mayBeGuess, let limit = note(answer, of: handle) {
            shard.refuseLockedOut(handle, limit)
        } else {
            shard.authenticated(handle, answer)
        }
    }

    /// Counts a wrong password, or ends the count: not where a certificate or token lets the client
    /// in as another user than its CONNECT names, which would win it free guesses at that one.
    ///
    /// Returns the limit of a lock that began while the password was checked: even a right one is
    /// then refused, so that guesses side by side win nothing.
    private mutating func note(_ answer: LoginAnswer, of handle: Handle) -> Limit? {
        let (isWrong, isRight) =
            switch answer {
            case .wrongPassword, .denied: (true, false)
            case .admitted(let login): (false, shard.isClaimedUser(handle, login))
            case .tokenRefused, .serviceUnavailable, .busy: (false, false)
            }
        guard isWrong || !lockouts.isEmpty,
            let userName = shard.userNameBeingChecked(handle)
        else { return nil }
        let peer = reactor.peerAddress(of: handle)
        if let limit = lockouts.lock(of: userName, from: peer, at: shard.now) { return limit }
        if isWrong {
            for beginning in lockouts.noteWrong(userName, from: peer, at: shard.now) {
                notices.logLockout(
                    beginning, peer, for: settings.limits.lockoutTime, now: shard.now)
            }
        } else if isRight {
            lockouts.noteRight(userName, from: peer)
        }
        return nil
    }

    var currentLockouts: [Lockout] {
        lockouts.locks(at: shard.now, wallClockMs: shard.wallClockMs)
    }
}
