// Command gen writes docs_gen.go, the manuals of the native components, from the
// sources below natives. go generate runs it in natives/docs.
package main

import (
	"fmt"
	"os"
)

func main() {
	src, err := generate("../..")
	if err == nil {
		err = os.WriteFile("docs_gen.go", src, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
