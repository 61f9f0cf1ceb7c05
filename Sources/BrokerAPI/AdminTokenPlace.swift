/// The two places of the administrator's token, for the broker and for `hermesctl`.
public enum AdminTokenPlace {
    /// In the data directory.
    public static let fileName = "admin.token"
    /// Takes precedence over the file.
    public static let variable = "HERMES_ADMIN_TOKEN"
}
