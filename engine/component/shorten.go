package component

import (
	"fmt"
	"strings"
)

// maxMessage is the maximum length of a message in the log and in health, in
// bytes. A message may contain a whole record.
const maxMessage = 8 << 10

// Shorten returns the first 8 KiB of text, and its full length if it is longer.
// A shortened text does not share memory with the original.
func Shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxMessage], ""), len(text))
}
