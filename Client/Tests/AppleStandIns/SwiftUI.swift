import Foundation
import UIKit

@MainActor @preconcurrency
public protocol View {
    associatedtype Body: View

    @ViewBuilder var body: Body { get }
}

extension Never: View {
    public var body: Never { fatalError("a declaration only") }
}

@MainActor @preconcurrency
public protocol Scene {
    associatedtype Body: Scene

    @SceneBuilder var body: Body { get }
}

extension Never: Scene {}

@MainActor @preconcurrency
public protocol App {
    associatedtype Body: Scene

    @SceneBuilder var body: Body { get }

    init()
}

extension App {
    public static func main() {}
}

@resultBuilder
public enum SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

@resultBuilder
public enum ViewBuilder {
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }

    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }

    public static func buildBlock() -> EmptyView { fatalError("a declaration only") }

    public static func buildBlock<each Content: View>(
        _ content: repeat each Content
    ) -> TupleView<(repeat each Content)> { fatalError("a declaration only") }

    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }

    public static func buildEither<First: View, Second: View>(
        first: First
    ) -> ConditionalContent<First, Second> { fatalError("a declaration only") }

    public static func buildEither<First: View, Second: View>(
        second: Second
    ) -> ConditionalContent<First, Second> { fatalError("a declaration only") }
}

public protocol Primitive: View where Body == Never {}

extension Primitive {
    public var body: Never { fatalError("a declaration only") }
}

public struct EmptyView: Primitive {
    public init() {}
}

public struct TupleView<Content>: Primitive {}

public struct ConditionalContent<First, Second>: Primitive {}

extension Optional: View where Wrapped: View {
    public var body: Never { fatalError("a declaration only") }
}

public struct Text: Primitive {
    public init(_ text: String) {}
}

public struct Spacer: Primitive {
    public init() {}
}

public enum HorizontalAlignment: Sendable {
    case leading, center, trailing
}

public struct HStack<Content: View>: Primitive {
    public init(@ViewBuilder content: () -> Content) {}
}

public struct VStack<Content: View>: Primitive {
    public init(
        alignment: HorizontalAlignment = .center, @ViewBuilder content: () -> Content
    ) {}
}

public struct Section<Content: View>: Primitive {
    public init(@ViewBuilder content: () -> Content) {}
}

public struct List<Content: View>: Primitive {
    public init(@ViewBuilder content: () -> Content) {}
}

public struct NavigationStack<Content: View>: Primitive {
    public init(@ViewBuilder content: () -> Content) {}
}

public struct ForEach<Data: RandomAccessCollection, Content: View>: Primitive
where Data.Element: Identifiable {
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {}
}

public struct Button<Label: View>: Primitive {
    public init(action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> Label) {}
}

extension Button where Label == Text {
    public init(_ title: String, action: @escaping @MainActor () -> Void) {}
}

extension View {
    public func navigationTitle(_ title: String) -> some View { self }

    public func task<Value: Equatable>(
        id value: Value, _ action: sending @escaping @isolated(any) () async -> Void
    ) -> some View { self }
}

public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) {}

    public var body: Never { fatalError("a declaration only") }
}

@propertyWrapper
public struct State<Value> {
    public init(wrappedValue value: Value) {}

    public init(initialValue value: Value) {}

    public var wrappedValue: Value {
        get { fatalError("a declaration only") }
        nonmutating set {}
    }
}

@MainActor @preconcurrency
@propertyWrapper
public struct UIApplicationDelegateAdaptor<Delegate: NSObject & UIApplicationDelegate> {
    public init(_ type: Delegate.Type = Delegate.self) {}

    public var wrappedValue: Delegate { fatalError("a declaration only") }
}
