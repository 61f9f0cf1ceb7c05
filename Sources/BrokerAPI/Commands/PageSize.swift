/// Items on one page of a list.
public enum PageSize {
    public static let usual = 100
    public static let largest = 1_000
}
