public import StenoAudio

extension StenoError.Code {
    /// There is no model of that name in the catalogue.
    public static let modelUnknown = Self(rawValue: "model.unknown")
    /// The store may not download, and the model is not installed.
    public static let modelStoreOffline = Self(rawValue: "model.offline")
    /// The model could not be downloaded; the message says why. Trying again goes on where it was.
    public static let modelDownloadFailed = Self(rawValue: "model.downloadFailed")
    /// What was downloaded, or what is installed, is not what the catalogue says.
    public static let modelChecksumMismatch = Self(rawValue: "model.checksumMismatch")
    /// The archive is damaged, or it would write where it must not.
    public static let modelArchiveInvalid = Self(rawValue: "model.archiveInvalid")
    /// The model is being installed by somebody else.
    public static let modelStoreBusy = Self(rawValue: "model.busy")
    public static let modelNotInstalled = Self(rawValue: "model.notInstalled")
    /// The disk has no room for the model.
    public static let modelStoreFull = Self(rawValue: "model.diskFull")
    /// The store's folder cannot be read or written; the native code is the errno.
    public static let modelStoreFailed = Self(rawValue: "model.storeFailed")
    /// The catalogue cannot be used.
    public static let modelCatalogInvalid = Self(rawValue: "model.catalogInvalid")
}
