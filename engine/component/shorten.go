package component

import (
	"fmt"
	"strings"
)

// maxMessage is how long a message is in the log and in health, in bytes: one may
// have all of a record in it.
const maxMessage = 8 << 10

// Shorten returns what is shown of a text: its first 8 KiB, and how long it is if
// that is not all. A shortened text does not share memory with the whole one.
func Shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxMessage], ""), len(text))
}
