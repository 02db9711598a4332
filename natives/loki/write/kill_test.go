package write_test

func sendForever(dir, url string) {}
