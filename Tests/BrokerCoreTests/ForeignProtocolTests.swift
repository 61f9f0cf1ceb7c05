import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Other protocols than MQTT")
struct ForeignProtocolTests {
    private static let known: [(String, ForeignProtocol)] = [
        ("GET / HTTP/1.1\r\n", .http), ("POST /x HTTP/1.1\r\n", .http),
        ("OPTIONS * HTTP/1.1\r\n", .http), ("CONNECT a:1 HTTP/1.1\r\n", .http),
        ("PRI * HTTP/2.0\r\n", .http), ("PROXY TCP4 192.0.2.1 ", .proxyHeader),
        ("\r\n\r\n\0\r\nQUIT\n!", .proxyHeader),
    ]

    @Test("HTTP and PROXY headers are recognised by their first bytes", arguments: known)
    func beginnings(text: String, kind: ForeignProtocol) {
        #expect(Array(text.utf8).withUnsafeBytes { ForeignProtocol(beginning: $0) } == kind)
        #expect(ForeignProtocol(opening: Array(text.utf8.prefix(5))) == kind)
    }

    @Test("of anything else nothing is said, nor of fewer than five bytes")
    func unknown() {
        for text in ["\u{10}\u{C}\0\u{4}MQTT", "GETS /", "\u{16}\u{3}\u{1}\0\u{1}", "", "PROX"] {
            #expect(ForeignProtocol(opening: Array(text.utf8.prefix(5))) == nil)
            #expect(Array(text.utf8).withUnsafeBytes { ForeignProtocol(beginning: $0) } == nil)
        }
    }
}
