import Addresses
import BrokerAPI
import MQTTCodec

extension ValueFormat where Value == String {
    /// A numeric address or `localhost`, which need no name service.
    static var address: Self {
        let expectation = "a numeric IPv4 or IPv6 address, or localhost"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> String in
                guard IPAddress(listener: text) != nil else {
                    let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is not a numeric address",
                        cure: isBracketed
                            ? "Leave out the brackets."
                            : "Give \(expectation). 0.0.0.0 and :: stand for all addresses.")
                }
                return text
            },
            write: { $0 }
        )
    }

    /// A path of at most `limit` bytes.
    static func path(_ noun: String, limit: Int = 4_095) -> Self {
        Self(
            expectation: "the path of \(noun)",
            read: { (text: String) throws(RefusedValue) -> String in
                guard !text.isEmpty else {
                    throw RefusedValue(
                        complaint: "the path is empty", cure: "Give the path of \(noun).")
                }
                guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) holds a control character",
                        cure: "Give a path without one.")
                }
                guard text.utf8.count <= limit else {
                    throw RefusedValue(
                        complaint:
                            "the path is \(text.utf8.count) bytes long, the system takes \(limit)",
                        cure: "Give a shorter path.")
                }
                guard text != "~", !text.hasPrefix("~/") else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) begins with ~, which only a shell expands",
                        cure: "Write the path in full.")
                }
                return text
            },
            write: { $0 }
        )
    }

    /// A topic name with placeholders as whole levels: all of `required`, and no others.
    static func topicTemplate(required: [String]) -> Self {
        let placeholders = required.map { "{\($0)}" }
        let list = placeholders.joined(separator: " and ")
        return Self(
            expectation: "a topic name with \(list), each as a whole level",
            read: { (text: String) throws(RefusedValue) -> String in
                func refuse(_ complaint: String, _ cure: String) -> RefusedValue {
                    RefusedValue(complaint: "\(quoted(text)) \(complaint)", cure: cure)
                }
                // In bytes of the template. Leaves room for ids of usual length in a topic name.
                guard text.utf8.count <= 1_024 else {
                    throw refuse("is longer than 1024 bytes", "Give a shorter topic name.")
                }
                guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                    throw refuse("holds a control character", "Give a topic name without one.")
                }
                guard !text.contains("+"), !text.contains("#") else {
                    throw refuse("holds a wildcard", "Write a topic name without + and #.")
                }
                guard !text.hasPrefix("$") else {
                    throw refuse(
                        "begins with $, and such topics are the broker's own",
                        "Give a topic name that begins otherwise.")
                }
                let levels = text.split(separator: "/", omittingEmptySubsequences: false)
                    .map(String.init)
                for placeholder in placeholders where !levels.contains(placeholder) {
                    throw refuse(
                        "does not hold \(placeholder) as a whole level",
                        "Give a topic name with \(list), such as orders/\(placeholders.joined(separator: "/"))."
                    )
                }
                for level in levels where level.contains("{") || level.contains("}") {
                    guard placeholders.contains(level) else {
                        throw refuse(
                            "holds the level \(quoted(level))",
                            "Braces may only stand around a whole level: \(list).")
                    }
                }
                return text
            },
            write: { $0 }
        )
    }
}

extension ValueFormat where Value == HermesConfiguration.Durability {
    /// `sync`, `none`, or `interval` with a time.
    static var durability: Self {
        let interval = ValueFormat<Duration>.duration(.milliseconds(1)...(.seconds(60)))
        return Self(
            expectation: "sync, none, or interval with a time such as interval 50ms",
            read: { (text: String) throws(RefusedValue) -> HermesConfiguration.Durability in
                switch text {
                case "sync": return .sync
                case "none": return .none
                default:
                    guard text.hasPrefix("interval ") else {
                        throw RefusedValue(
                            complaint: "\(quoted(text)) is not a durability",
                            cure: "Give sync, none, or interval with a time: interval 50ms.")
                    }
                    let time = text.dropFirst("interval ".count)
                    guard time.isEmpty || !time.allSatisfy({ ("0"..."9").contains($0) }) else {
                        throw RefusedValue(
                            complaint: "\(quoted(text)) has no unit", cure: "Write \(text)ms.")
                    }
                    return .interval(try interval.read(String(time)))
                }
            },
            write: { durability in
                switch durability {
                case .sync: "sync"
                case .interval(let time): "interval \(Quantity.duration(time))"
                case .none: "none"
                }
            }
        )
    }
}

extension ValueFormat where Value == [String] {
    /// Addresses and networks, as a YAML list or separated by commas. An empty value is rejected:
    /// without its proxies, a loopback listener would accept anonymous clients.
    static var networks: Self {
        Self(
            expectation:
                "a numeric address or a network such as 10.0.0.0/8, or several with commas between them",
            read: { (text: String) throws(RefusedValue) -> [String] in
                var networks: [String] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    networks.append(try network(String(part.trimmingPrefix { $0 == " " })))
                }
                return networks
            },
            write: { $0.joined(separator: ",") }
        )
    }

    /// An address, optionally with a prefix length.
    private static func network(_ text: String) throws(RefusedValue) -> String {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, let address = IPAddress(host: String(host)) else {
            throw RefusedValue(
                complaint: "\(quoted(text)) is neither an address nor a network",
                cure: "Give 127.0.0.1, ::1, 10.0.0.0/8, fd00::/8 or the like.")
        }
        guard parts.count == 2 else { return text }
        let isNumber =
            (1...3).contains(parts[1].utf8.count)
            && parts[1].allSatisfy { ("0"..."9").contains($0) }
        guard isNumber, let bits = Int(parts[1]), bits <= address.family.bitCount else {
            throw RefusedValue(
                complaint: "\(quoted(text)) does not end in a number of bits",
                cure: "Give 0 to \(address.family.bitCount) behind the /.")
        }
        let network = IPNetwork(address, length: UInt8(bits))
        guard network.first == address else {
            throw RefusedValue(
                complaint: "\(quoted(text)) has bits set behind the first \(bits)",
                cure:
                    "Write \(network.first.hostText)/\(bits) for the network, or \(address.hostText) for the address alone."
            )
        }
        return text
    }

    /// Paths, as a YAML list or separated by commas.
    static func paths(_ noun: String) -> Self {
        let path = ValueFormat<String>.path(noun)
        return Self(
            expectation: "the path of \(noun), or several with commas between them",
            absent: [],
            read: { (text: String) throws(RefusedValue) -> [String] in
                var paths: [String] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    paths.append(try path.read(String(part.trimmingPrefix { $0 == " " })))
                }
                return paths
            },
            write: { $0.joined(separator: ",") }
        )
    }
}

extension ValueFormat where Value == BrokerLimits.AddressLimit {
    /// `auto`, `off`, or a number of at least 1.
    static func addressLimit(_ most: Int) -> Self {
        let number = ValueFormat<Int>.number(1...most)
        let expectation = "\(number.expectation), auto or off"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> BrokerLimits.AddressLimit in
                switch text {
                case "auto": return .auto
                case "off": return .off
                default:
                    do throws(RefusedValue) {
                        return .number(try number.read(text))
                    } catch {
                        throw RefusedValue(
                            complaint: error.complaint, cure: "Give \(expectation).")
                    }
                }
            },
            write: { limit in
                switch limit {
                case .auto: "auto"
                case .off: "off"
                case .number(let most): "\(most)"
                }
            }
        )
    }
}

extension ValueFormat where Value == BrokerLimits.MemoryLimit {
    /// `auto`, `off`, or a size.
    static func memoryLimit(_ range: ClosedRange<Int>) -> Self {
        let size = ValueFormat<Int>.size(range)
        let expectation = "\(size.expectation), auto or off"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> BrokerLimits.MemoryLimit in
                switch text {
                case "auto": return .auto
                case "off": return .off
                default:
                    do throws(RefusedValue) {
                        return .bytes(try size.read(text))
                    } catch {
                        throw RefusedValue(
                            complaint: error.complaint, cure: "\(error.cure) Or auto, or off.")
                    }
                }
            },
            write: { limit in
                switch limit {
                case .auto: "auto"
                case .off: "off"
                case .bytes(let bytes): Quantity.size(bytes)
                }
            }
        )
    }
}

extension ValueFormat where Value == QoS {
    static var qos: Self {
        let number = ValueFormat<UInt8>.number(0...2, noun: "a QoS")
        return Self(
            expectation: number.expectation,
            read: { (text: String) throws(RefusedValue) -> QoS in
                let value = try number.read(text)
                guard let qos = QoS(rawValue: value) else {
                    preconditionFailure("\(value) was checked to be a QoS")
                }
                return qos
            },
            write: { number.write($0.rawValue) }
        )
    }
}
