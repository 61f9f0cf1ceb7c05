import Addresses
import NIOCore
import NIOHTTP1

extension HTTPRequestHead {
    /// True for HTTP/1.0 and older.
    var isFormerVersion: Bool { version.major < 1 || version.major == 1 && version.minor == 0 }

    /// A head of HTTP/1.0 with what it leaves out, and without what it cannot ask for: without Host
    /// it means this server (RFC 9112, section 3.3), and it awaits no 100 Continue (RFC 9110, section
    /// 10.1.1). `local` is the address that it came to.
    func completed(at local: SocketAddress?) -> HTTPRequestHead {
        var head = self
        head.headers.remove(name: "Expect")
        if !head.headers.contains(name: "Host") {
            let own = local?.ipAddress == nil ? "localhost" : IPAddress.text(local)
            head.headers.add(name: "Host", value: Problem.authority(ofTarget: uri) ?? own)
        }
        return head
    }

    /// True for a request after which nothing is read: an upgrade, requests that a proxy may have
    /// parsed differently, and those of HTTP/1.0, for which an answer without Content-Length can end
    /// only with its connection.
    var isLast: Bool {
        if method == .CONNECT || isFormerVersion { return true }
        var hasHost = false
        for (name, value) in headers {
            switch name.utf8.count {
            case 4 where name.utf8.isWord("host"):
                if hasHost { return true }
                hasHost = true
            case 7 where name.utf8.isWord("upgrade"): return true
            case 17 where name.utf8.isWord("transfer-encoding"):
                if !value.utf8.isWord("chunked") { return true }
            default: continue
            }
        }
        return false
    }
}
