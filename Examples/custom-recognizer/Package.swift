// swift-tools-version: 6.3
import PackageDescription

/// A package as a user of Steno has it: a recognizer of its own, which needs nothing but the core, and a program that
/// runs it on files and live.
let package = Package(
    name: "custom-recognizer",
    // Dynamic, so that one can see what it is linked with: no C library of any back end.
    products: [.library(name: "ToneSpotter", type: .dynamic, targets: ["ToneSpotter"])],
    dependencies: [.package(name: "steno", path: "../..")],
    targets: [
        .target(
            name: "ToneSpotter",
            dependencies: [
                .product(name: "StenoAnalysis", package: "steno"), .product(name: "StenoAudio", package: "steno"),
            ]),
        .executableTarget(
            name: "dtmf",
            dependencies: [
                "ToneSpotter", .product(name: "Steno", package: "steno"),
                .product(name: "StenoPulseAudio", package: "steno"),
            ]),
        .testTarget(
            name: "ToneSpotterTests",
            dependencies: [
                "ToneSpotter", "dtmf", .product(name: "Steno", package: "steno"),
                .product(name: "StenoTesting", package: "steno"),
            ]),
    ]
)
