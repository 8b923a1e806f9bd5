@main struct ListDevices { static func main() {} }
