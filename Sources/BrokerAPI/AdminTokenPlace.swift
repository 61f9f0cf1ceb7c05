/// The two places of the administrator's token, for the broker and for `hermesctl`.
public enum AdminTokenPlace {
    /// In the data directory.
    public static let fileName = "admin.token"
    /// Takes precedence over the file.
    public static let variable = "HERMES_ADMIN_TOKEN"
}

/// Where a running broker leaves the address of its HTTP API, for `hermesctl` on its machine.
public enum AdminAddressPlace {
    /// In the data directory: a URL on the first line.
    public static let fileName = "admin.address"
    /// The most bytes of the file.
    public static let mostBytes = 1_024
}
