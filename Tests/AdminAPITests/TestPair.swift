import Glibc
import Testing

/// Certificates with P-256 keys as text, valid for a hundred years.
struct TestPair {
    let certificate: String
    let key: String

    /// Writes both files into a directory; only the owner can read the key.
    func write(certificate certificatePath: String, key keyPath: String) throws {
        for (text, path) in [(certificate, certificatePath), (key, keyPath)] {
            let stream = try #require(fopen(path, "w"))
            fputs(text, stream)
            fclose(stream)
            chmod(path, 0o600)
        }
    }

    static let first = TestPair(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBfDCCASGgAwIBAgIUUl6DuVlmWClJhz4VE9+6bi3y7hwwCgYIKoZIzj0EAwIw
            EjEQMA4GA1UEAwwHYnJva2VyMTAgFw0yNjExMjIxMjUyMzRaGA8yMTI2MTAyOTEy
            NTIzNFowEjEQMA4GA1UEAwwHYnJva2VyMTBZMBMGByqGSM49AgEGCCqGSM49AwEH
            A0IABEtJjKriPOs++tgY2eaoq7qCsXlG+q734R0kh5v/qFezTGiq7WHu+t1ayZWa
            Xw3te/oKdl25vcQeaLS97lY063WjUzBRMB0GA1UdDgQWBBTxFhUCBC/V6t4SF6m+
            SVmbAK4weDAfBgNVHSMEGDAWgBTxFhUCBC/V6t4SF6m+SVmbAK4weDAPBgNVHRMB
            Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQD2RgZBe5KiPzOJ1slbKKUqqe1T
            vAXhfhsL9J0CUzZ8kgIhAJr80G7fsgF1g+566khJYLpIh8OC941neudVuSLkq9Q0
            -----END CERTIFICATE-----

            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQges7rJc8aL5SjTmFR
            7DE7OQtLTEMZoeaQGsoREkUN/A+hRANCAARLSYyq4jzrPvrYGNnmqKu6grF5Rvqu
            9+EdJIeb/6hXs0xoqu1h7vrdWsmVml8N7Xv6CnZdub3EHmi0ve5WNOt1
            -----END PRIVATE KEY-----

            """)

    static let second = TestPair(
        certificate: """
            -----BEGIN CERTIFICATE-----
            MIIBezCCASGgAwIBAgIUX2cP5IjqgyFd3m7ifCHvrw41fWgwCgYIKoZIzj0EAwIw
            EjEQMA4GA1UEAwwHYnJva2VyMjAgFw0yNjExMjIxMjUyMzRaGA8yMTI2MTAyOTEy
            NTIzNFowEjEQMA4GA1UEAwwHYnJva2VyMjBZMBMGByqGSM49AgEGCCqGSM49AwEH
            A0IABJUX+JvjqrXVEF6PC5yAKriVyBjcGewR9yxH97/PmOgb/hJ97L3CIuNsVTEJ
            AGDQhvVkCnRFg9D1tCClcW9MR1ajUzBRMB0GA1UdDgQWBBRVYmc0laea7NIpqu9T
            sWu8LM1j7jAfBgNVHSMEGDAWgBRVYmc0laea7NIpqu9TsWu8LM1j7jAPBgNVHRMB
            Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIHZUN+7BqG9LqcCcYYcHd7IEjvVD
            A/XBpQqif+qjvqNIAiEA2Y8lZEKbEBmZrSUYlJTq2CG4MYY5O5hLaxu0GOD4C3I=
            -----END CERTIFICATE-----

            """,
        key: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKt41IyDC/5JD2X0S
            d9+NuZP8U2FhOCg4zP/gCE9iLjqhRANCAASVF/ib46q11RBejwucgCq4lcgY3Bns
            EfcsR/e/z5joG/4Sfey9wiLjbFUxCQBg0Ib1ZAp0RYPQ9bQgpXFvTEdW
            -----END PRIVATE KEY-----

            """)
}
