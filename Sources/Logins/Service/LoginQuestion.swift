import Credentials
import PlainText
import RequestText

/// A login that the company's service is asked about.
package struct LoginQuestion: Sendable {
    /// As CONNECT names it.
    package var userName: [UInt8]
    package var clientID: [UInt8]
    package var password: [UInt8]
    /// The user name that the client's certificate proves, in UTF-8; `nil` for none.
    package var certificateName: [UInt8]?
    /// The client's address without its port, as text.
    package var address: String

    package init(
        userName: [UInt8], clientID: [UInt8], password: [UInt8],
        certificateName: [UInt8]? = nil, address: String
    ) {
        self.userName = userName
        self.clientID = clientID
        self.password = password
        self.certificateName = certificateName
        self.address = address
    }

    /// The JSON document of the request. A password that is no UTF-8 comes in base 64 under another
    /// name; MQTT's other strings are UTF-8.
    package var body: [UInt8] {
        var body = JSONBytes()
        func add(_ name: String, _ value: some Sequence<UInt8>) {
            body.text(body.bytes.isEmpty ? "{" : ",")
            body.string(name)
            body.text(":")
            body.string(utf8: value)
        }
        add("user_name", userName)
        add("client_id", clientID)
        if String(validating: password, as: UTF8.self) != nil {
            add("password", password)
        } else {
            add("password_base64", Base64.text(of: password).utf8)
        }
        if let certificateName { add("certificate_name", certificateName) }
        add("address", address.utf8)
        body.text("}")
        return body.bytes
    }

    /// A digest of everything asked. The key is random and of this process, so that nobody who reads
    /// memory finds a password by trying likely ones elsewhere.
    package func digest(_ key: [UInt8]) -> SHA256Digest {
        var message = key
        var parts = [userName, clientID, password, Array(address.utf8)]
        if let certificateName { parts.append(certificateName) }
        for part in parts {
            // With its length, so that no two questions have the same bytes.
            withUnsafeBytes(of: UInt64(part.count).littleEndian) { message += $0 }
            message += part
        }
        return SHA256Digest(of: message)
    }
}
