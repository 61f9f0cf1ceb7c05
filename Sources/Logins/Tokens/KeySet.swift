import Credentials
import PlainText

/// The keys in use. Immutable: other keys are another set.
package struct KeySet: Sendable, Equatable {
    /// In their order.
    package let keys: [VerificationKey]
    /// Why other keys of the document are not in use, one clause each.
    package let skipped: [String]

    private let indexOfName: [ForeignText: Int]
    private let unnamed: [Int]

    /// The most keys of one set; a provider has two or three at a time.
    package static let mostKeys = 64

    /// Keys with different names, at most ``mostKeys``.
    package init(_ keys: [VerificationKey], skipped: [String] = []) {
        self.keys = keys
        self.skipped = skipped
        var names: [ForeignText: Int] = [:]
        var unnamed: [Int] = []
        for (index, key) in keys.enumerated() {
            if let name = key.identifier { names[name] = index } else { unnamed.append(index) }
        }
        indexOfName = names
        self.unnamed = unnamed
    }

    /// The key that a token's header means. A name finds the key of that name; without such a key,
    /// and for a token without a name, the only key that could be meant.
    ///
    /// - Throws: ``TokenRefusal/unknownKey(_:)``, ``TokenRefusal/ambiguousKey`` or
    ///   ``TokenRefusal/wrongAlgorithm(asked:key:)``.
    func key(for header: TokenHeader) throws(TokenRefusal) -> VerificationKey {
        let key: VerificationKey
        if let name = header.keyIdentifier, let index = indexOfName[name] {
            key = keys[index]
        } else if let name = header.keyIdentifier {
            // A key from a PEM or secret file has no name of its own.
            guard unnamed.count == 1 else { throw .unknownKey(name) }
            key = keys[unnamed[0]]
        } else if keys.count == 1 {
            key = keys[0]
        } else {
            let fitting = keys.filter { $0.algorithm.name == header.algorithm }
            guard fitting.count == 1 else {
                throw fitting.isEmpty
                    ? .wrongAlgorithm(asked: header.algorithm, key: nil) : .ambiguousKey
            }
            key = fitting[0]
        }
        guard key.algorithm.name == header.algorithm else {
            throw .wrongAlgorithm(asked: header.algorithm, key: key.algorithm)
        }
        return key
    }

    /// True when both hold the same keys of the same names in the same order.
    package static func == (left: KeySet, right: KeySet) -> Bool {
        left.keys.elementsEqual(right.keys) { left, right in
            left.identifier == right.identifier && left.algorithm == right.algorithm
                && left.digest == right.digest
        }
    }
}
