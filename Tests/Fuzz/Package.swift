// swift-tools-version: 6.3
import PackageDescription

/// The parsers under libFuzzer; see Scripts/fuzz. A package of its own: everything in it is built with the fuzzer's
/// instrumentation.
let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "steno", path: "../..")],
    targets: [
        .systemLibrary(name: "CMemoryFile"),
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "CMemoryFile",
                .product(name: "StenoAudio", package: "steno"), .product(name: "StenoFiles", package: "steno"),
                .product(name: "StenoModels", package: "steno"), .product(name: "StenoTranscript", package: "steno"),
            ],
            // Its main is libFuzzer's.
            swiftSettings: [
                .strictMemorySafety(), .enableUpcomingFeature("MemberImportVisibility"),
                .unsafeFlags(["-parse-as-library"]),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
