/// Items on one page of a list.
package enum PageSize {
    package static let usual = 100
    package static let largest = 1_000
}
