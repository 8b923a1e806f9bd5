@main struct Transcribe { static func main() {} }
