package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/engine/files"
)

func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() ([]byte, error){
		"os":    func() ([]byte, error) { return os.ReadFile(path) },
		"files": func() ([]byte, error) { return files.Read(path, 1000) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
