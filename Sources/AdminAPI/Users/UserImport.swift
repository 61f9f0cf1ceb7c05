import BrokerAPI
import Credentials
import FoundationEssentials
import NIOCore

/// An import of users: a user on each line, and a result for each. A group of lines is one change
/// of the file.
struct UserImport: BatchWork {
    typealias Outcomes = [Result<Bool, Problem>]

    let file: UserFile
    let hasher: PasswordHasher

    func prepare(
        _ line: UnsafeRawBufferPointer, _ caller: Caller?
    ) throws(Problem) -> UserOrder {
        try UserOrder(line: JSONFields(line: line, known: UserOrder.fieldsOfLine))
    }

    /// For each user, true if it was there before.
    func carryOut(_ items: [UserOrder], for caller: Caller?) async -> Outcomes {
        var hashes: [Result<PasswordHash, Problem>] = []
        for item in items {
            switch item.secret {
            case .hash(let hash): hashes.append(.success(hash))
            case .password(let password):
                do throws(Problem) {
                    hashes.append(.success(try await hasher.hash(password)))
                } catch {
                    hashes.append(.failure(error))
                }
            }
        }
        let changes = zip(items, hashes).compactMap { item, hash in
            (try? hash.get()).map { UserFile.Change(userName: item.name, hash: $0) }
        }
        let stored: Result<[Bool], Problem>
        do throws(Problem) {
            switch try await file.set(changes) {
            case .changed(let existed): stored = .success(existed)
            case .full: stored = .failure(.tooManyUsers)
            }
        } catch {
            stored = .failure(error)
        }
        var place = 0
        return hashes.map { hash in
            if case .failure(let problem) = hash { return .failure(problem) }
            defer { place += 1 }
            return stored.map { $0[place] }
        }
    }

    func write(
        _ outcomes: Outcomes, _ index: Int, of item: UserOrder, line: Int,
        to results: inout ByteBuffer
    ) -> LineEnd {
        switch outcomes[index] {
        case .success(let existed):
            results.write(
                UserImported(line: line, name: item.name.text, created: !existed))
            return .done
        case .failure(let problem):
            results.write(problem, line: line)
            return .failed
        }
    }
}

extension Problem {
    static let tooManyUsers = Problem(
        .tooManyUsers,
        "The password file would have more than \(PasswordFile.maximumByteCount) bytes; nothing was "
            + "changed.",
        fix: "Remove users: DELETE /v1/users/{name}.")
}
