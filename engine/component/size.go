package component

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/units"
)

// Size is a number of bytes in the config: 1024, "8MiB", "10MB". As in
// Prometheus and Alloy, K, M and G are powers of 1024 with and without the i.
// It is never negative once decoded.
type Size int64

// ParseSize parses a size from the config.
func ParseSize(text string) (Size, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return Size(n), nil
	}
	b, err := units.ParseBase2Bytes(text)
	if err != nil || b < 0 {
		return 0, fmt.Errorf("cannot read %q as a size: write a number of bytes or one with a unit such as \"8MiB\"", text)
	}
	return Size(b), nil
}

// UnmarshalAlloy reads a number or a string with a unit.
func (s *Size) UnmarshalAlloy(f func(any) error) error {
	var n int64
	if f(&n) == nil && n >= 0 {
		*s = Size(n)
		return nil
	}
	var text string
	if err := f(&text); err != nil {
		return err
	}
	parsed, err := ParseSize(text)
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// MarshalText returns the size with its unit.
func (s Size) MarshalText() ([]byte, error) { return []byte(units.Base2Bytes(s).String()), nil }
