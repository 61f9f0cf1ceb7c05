/// The two places of the administrator's token, for the broker and for `hermesctl`.
package enum AdminTokenPlace {
    /// In the data directory.
    package static let fileName = "admin.token"
    /// Takes precedence over the file.
    package static let variable = "HERMES_ADMIN_TOKEN"
}
