// What is stated here was read in public material; each entry names its own in `source`. Nothing is estimated.

extension ModelCatalog {
    /// whisper.cpp's models from tiny to large-v3-turbo with their quantizations, the Silero detectors, and Vosk's small
    /// models.
    public static let builtIn = ModelCatalog(checked: whisper + detectors + vosk)

    private static let whisper: [ModelEntry] = [
        .whisper(
            "tiny", 77_691_713,
            "be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21",
            "bd577a113a864445d4c299885e0cb97d4ba92b5f"),
        .whisper(
            "tiny-q5_1", 32_152_673,
            "818710568da3ca15689e31a743197b520007872ff9576237bda97bd1b469c3d7",
            "2827a03e495b1ed3048ef28a6a4620537db4ee51"),
        .whisper(
            "tiny-q8_0", 43_537_433,
            "c2085835d3f50733e2ff6e4b41ae8a2b8d8110461e18821b09a15c40c42d1cca",
            "19e8118f6652a650569f5a949d962154e01571d9"),
        .whisper(
            "tiny.en", 77_704_715,
            "921e4cf8686fdd993dcd081a5da5b6c365bfde1162e72b08d75ac75289920b1f",
            "c78c86eb1a8faa21b369bcd33207cc90d64ae9df"),
        .whisper(
            "tiny.en-q5_1", 32_166_155,
            "c77c5766f1cef09b6b7d47f21b546cbddd4157886b3b5d6d4f709e91e66c7c2b",
            "3fb92ec865cbbc769f08137f22470d6b66e071b6"),
        .whisper(
            "tiny.en-q8_0", 43_550_795,
            "5bc2b3860aa151a4c6e7bb095e1fcce7cf12c7b020ca08dcec0c6d018bb7dd94",
            "802d6668e7d411123e672abe4cb6c18f12306abb"),
        .whisper(
            "base", 147_951_465,
            "60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe",
            "465707469ff3a37a2b9b8d8f89f2f99de7299dac"),
        .whisper(
            "base-q5_1", 59_707_625,
            "422f1ae452ade6f30a004d7e5c6a43195e4433bc370bf23fac9cc591f01a8898",
            "a3733eda680ef76256db5fc5dd9de8629e62c5e7"),
        .whisper(
            "base-q8_0", 81_768_585,
            "c577b9a86e7e048a0b7eada054f4dd79a56bbfa911fbdacf900ac5b567cbb7d9",
            "7bb89bb49ed6955013b166f1b6a6c04584a20fbe"),
        .whisper(
            "base.en", 147_964_211,
            "a03779c86df3323075f5e796cb2ce5029f00ec8869eee3fdfb897afe36c6d002",
            "137c40403d78fd54d454da0f9bd998f78703390c"),
        .whisper(
            "base.en-q5_1", 59_721_011,
            "4baf70dd0d7c4247ba2b81fafd9c01005ac77c2f9ef064e00dcf195d0e2fdd2f",
            "d26d7ce5a1b6e57bea5d0431b9c20ae49423c94a"),
        .whisper(
            "base.en-q8_0", 81_781_811,
            "a4d4a0768075e13cfd7e19df3ae2dbc4a68d37d36a7dad45e8410c9a34f8c87e",
            "bb1574182e9b924452bf0cd1510ac034d323e948"),
        .whisper(
            "small", 487_601_967,
            "1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b",
            "55356645c2b361a969dfd0ef2c5a50d530afd8d5"),
        .whisper(
            "small-q5_1", 190_085_487,
            "ae85e4a935d7a567bd102fe55afc16bb595bdb618e11b2fc7591bc08120411bb",
            "6fe57ddcfdd1c6b07cdcc73aaf620810ce5fc771"),
        .whisper(
            "small-q8_0", 264_464_607,
            "49c8fb02b65e6049d5fa6c04f81f53b867b5ec9540406812c643f177317f779f",
            "bcad8a2083f4e53d648d586b7dbc0cd673d8afad"),
        .whisper(
            "small.en", 487_614_201,
            "c6138d6d58ecc8322097e0f987c32f1be8bb0a18532a3f88f734d1bbf9c41e5d",
            "db8a495a91d927739e50b3fc1cc4c6b8f6c2d022"),
        .whisper(
            "small.en-q5_1", 190_098_681,
            "bfdff4894dcb76bbf647d56263ea2a96645423f1669176f4844a1bf8e478ad30",
            "20f54878d608f94e4a8ee3ae56016571d47cba34"),
        .whisper(
            "small.en-q8_0", 264_477_561,
            "67a179f608ea6114bd3fdb9060e762b588a3fb3bd00c4387971be4d177958067",
            "9d75ff4ccfa0a8217870d7405cf8cef0a5579852"),
        .whisper(
            "medium", 1_533_763_059,
            "6c14d5adee5f86394037b4e4e8b59f1673b6cee10e3cf0b11bbdbee79c156208",
            "fd9727b6e1217c2f614f9b698455c4ffd82463b4"),
        .whisper(
            "medium-q5_0", 539_212_467,
            "19fea4b380c3a618ec4723c3eef2eb785ffba0d0538cf43f8f235e7b3b34220f",
            "7718d4c1ec62ca96998f058114db98236937490e"),
        .whisper(
            "medium-q8_0", 823_369_779,
            "42a1ffcbe4167d224232443396968db4d02d4e8e87e213d3ee2e03095dea6502",
            "e66645948aff4bebbec71b3485c576f3d63af5d6"),
        .whisper(
            "medium.en", 1_533_774_781,
            "cc37e93478338ec7700281a7ac30a10128929eb8f427dda2e865faa8f6da4356",
            "8c30f0e44ce9560643ebd10bbe50cd20eafd3723"),
        .whisper(
            "medium.en-q5_0", 539_225_533,
            "76733e26ad8fe1c7a5bf7531a9d41917b2adc0f20f2e4f5531688a8c6cd88eb0",
            "bb3b5281bddd61605d6fc76bc5b92d8f20284c3b"),
        .whisper(
            "medium.en-q8_0", 823_382_461,
            "43fa2cd084de5a04399a896a9a7a786064e221365c01700cea4666005218f11c",
            "b1cf48c12c807e14881f634fb7b6c6ca867f6b38"),
        .whisper(
            "large-v1", 3_094_623_691,
            "7d99f41a10525d0206bddadd86760181fa920438b6b33237e3118ff6c83bb53d",
            "b1caaf735c4cc1429223d5a74f0f4d0b9b59a299"),
        .whisper(
            "large-v2", 3_094_623_691,
            "9a423fe4d40c82774b6af34115b8b935f34152246eb19e80e376071d3f999487",
            "0f4c8e34f21cf1a914c59d8b3ce882345ad349d6"),
        .whisper(
            "large-v2-q5_0", 1_080_732_091,
            "3a214837221e4530dbc1fe8d734f302af393eb30bd0ed046042ebf4baf70f6f2",
            "00e39f2196344e901b3a2bd5814807a769bd1630"),
        .whisper(
            "large-v2-q8_0", 1_656_129_691,
            "fef54e6d898246a65c8285bfa83bd1807e27fadf54d5d4e81754c47634737e8c",
            "da97d6ca8f8ffbeeb5fd147f79010eeea194ba38"),
        .whisper(
            "large-v3", 3_095_033_483,
            "64d182b440b98d5203c4f9bd541544d84c605196c4f7b845dfa11fb23594d1e2",
            "ad82bf6a9043ceed055076d0fd39f5f186ff8062"),
        .whisper(
            "large-v3-q5_0", 1_081_140_203,
            "d75795ecff3f83b5faa89d1900604ad8c780abd5739fae406de19f23ecd98ad1",
            "e6e2ed78495d403bef4b7cff42ef4aaadcfea8de"),
        .whisper(
            "large-v3-turbo", 1_624_555_275,
            "1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69",
            "4af2b29d7ec73d781377bfd1758ca957a807e941"),
        .whisper(
            "large-v3-turbo-q5_0", 574_041_195,
            "394221709cd5ad1f40c46e6031ca61bce88931e6e088c188294c6d5a55ffa7e2",
            "e050f7970618a659205450ad97eb95a18d69c9ee"),
        .whisper(
            "large-v3-turbo-q8_0", 874_188_075,
            "317eb69c11673c9de1e1f0d459b253999804ec71ac4c23c17ecf5fbe24e259a1",
            "01bf15bedffe9f39d65c1b6ff9b687ea91f59e0e"),
    ]

    private static let detectors: [ModelEntry] = [
        .detector(
            "silero-v6.2.0", 885_098,
            "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987"),
        .detector(
            "silero-v5.1.2", 885_098,
            "29940d98d42b91fbd05ce489f3ecf7c72f0a42f027e4875919a28fb4c04ea2cf"),
    ]

    private static let vosk: [ModelEntry] = [
        .vosk(
            "small-en-us-0.15", "en-US", 41_205_931,
            .init(.sha256, "30f26242c4eb449f948e42cb302dd7a686cb29a3423a8367f99ff41780942498")),
        .vosk("small-en-in-0.4", "en-IN", 37_573_330, .init(.md5, "62fd085f33c8c5fc01a235030e2a1fe3")),
        .vosk("small-cn-0.22", "zh-CN", 43_898_754, .init(.md5, "d1a8e82933dcc7632667c036b0bb3dbb")),
        .vosk("small-ru-0.22", "ru", 46_236_750, .init(.md5, "d1759dc83eb8fd87850129afbd9f4b7b")),
        .vosk("small-fr-0.22", "fr", 42_233_323, .init(.md5, "8873b1234503f6edd55f54bfff31cf3e")),
        .vosk("small-de-0.15", "de", 46_499_967, .init(.md5, "4f21f92c0897b48287ef8839420608eb")),
        .vosk("small-es-0.42", "es", 39_817_833, .init(.md5, "2d5c94f9859a84881a0ef744738ebd31")),
        .vosk("small-pt-0.3", "pt", 32_453_112, .init(.md5, "458c69371c5a0b9ab6ee8fa417bf89da")),
        .vosk("small-tr-0.3", "tr", 36_855_784, .init(.md5, "198511631860597639a0ebf779263fcf")),
        .vosk("small-vn-0.4", "vi", 33_656_337, .init(.md5, "b31b474a1ef75488c5fa575f8e2a1269")),
        .vosk("small-it-0.22", "it", 49_665_141, .init(.md5, "fbd8f9c72cbb8c3dfa3e4581bd3585f4")),
        .vosk("small-nl-0.22", "nl", nil, nil),
        .vosk("small-ca-0.4", "ca", 43_405_881, .init(.md5, "5dc7901815fef3dc8b784b31f309385c")),
        .vosk("small-fa-0.42", "fa", 53_431_220, .init(.md5, "cc2b18af256ffab2c44055f6a02ecb3d")),
        .vosk("small-uk-v3-small", "uk", nil, nil),
        .vosk("small-kz-0.42", "kk", nil, nil),
        .vosk(
            "small-sv-rhasspy-0.15", "sv", 303_504_931, .init(.md5, "5ae431c65fe8636692118792daa22ecc"), licence: "MIT"),
        .vosk("small-ja-0.22", "ja", 49_704_573, .init(.md5, "0e3163dd62dfb0d823353718ac3cbf79")),
        .vosk("small-eo-0.42", "eo", 43_839_401, .init(.md5, "3e9319ca789fa06fd3efa68d51c85d6b")),
        .vosk("small-hi-0.22", "hi", 44_458_845, .init(.md5, "80f1265262c9a8a515f2707498e1b485")),
        .vosk(
            "small-cs-0.4-rhasspy", "cs", 46_088_666, .init(.md5, "df5ddac5ee8632f6b46a6fc751953286"), licence: "MIT"),
        .vosk("small-pl-0.22", "pl", 52_979_372, .init(.md5, "91cbbd6231320467da672be31827b6ac")),
        .vosk("small-uz-0.22", "uz", 51_061_189, .init(.md5, "4d75acfef76fe919c8fb68cd1179c182")),
        .vosk("small-ko-0.22", "ko", 86_914_329, .init(.md5, "fa8029a173787a159e0e72fe6135f890")),
        .vosk("small-gu-0.42", "gu", 108_054_987, .init(.md5, "4595a6f0cc0c88fee6eec7d80496fc10")),
        .vosk("small-te-0.42", "te", 60_544_249, .init(.md5, "ae3c093fd7dd883d462983b15900ca61")),
    ]
}

extension ModelEntry {
    /// Address, size and SHA-256 as Hugging Face states them for the repository of whisper.cpp's author (Git LFS); SHA-1 as
    /// models/README.md of whisper.cpp has it, or for quantizations that it leaves out the repository's own README.md.
    fileprivate static func whisper(_ name: String, _ size: Int64, _ sha256: String, _ sha1: String) -> ModelEntry {
        let isEnglish = name.contains(".en")
        let knowsCantonese = name.hasPrefix("large-v3")
        return ModelEntry(
            name: name, kind: .whisper,
            address: "https://huggingface.co/ggerganov/whisper.cpp/resolve/main/ggml-\(name).bin",
            fileName: "ggml-\(name).bin", size: size, digests: [.init(.sha256, sha256), .init(.sha1, sha1)],
            licence: "MIT",
            languages: isEnglish ? ["en"] : whisperLanguages + (knowsCantonese ? ["yue"] : []),
            source: "https://huggingface.co/ggerganov/whisper.cpp/tree/main, "
                + "https://github.com/ggml-org/whisper.cpp/blob/master/models/README.md")
    }

    /// As Hugging Face states them; the address is that of models/download-vad-model.sh of whisper.cpp.
    fileprivate static func detector(_ name: String, _ size: Int64, _ sha256: String) -> ModelEntry {
        ModelEntry(
            name: name, kind: .detector,
            address: "https://huggingface.co/ggml-org/whisper-vad/resolve/main/ggml-\(name).bin",
            fileName: "ggml-\(name).bin", size: size, digests: [.init(.sha256, sha256)], licence: "MIT", languages: [],
            source: "https://huggingface.co/ggml-org/whisper-vad/tree/main")
    }

    /// Address, size and MD5 as Vosk's list of models has them, the licence as its page says. The page gives no SHA-256;
    /// that of the English model is the one under which public package recipes pin the same file.
    fileprivate static func vosk(
        _ name: String, _ language: String, _ size: Int64?, _ digest: ModelDigest?, licence: String = "Apache-2.0"
    ) -> ModelEntry {
        ModelEntry(
            name: "vosk-\(name)", kind: .vosk,
            address: "https://alphacephei.com/vosk/models/vosk-model-\(name).zip", fileName: "vosk-model-\(name)",
            size: size, digests: digest.map { [$0] } ?? [], licence: licence, languages: [language],
            source: "https://alphacephei.com/vosk/models, https://alphacephei.com/vosk/models/model-list.json")
    }

    /// As src/whisper.cpp of whisper.cpp lists them, in BCP 47.
    private static let whisperLanguages = """
        en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml
        cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am
        yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jv su
        """.split(whereSeparator: \.isWhitespace).map(String.init)
}
