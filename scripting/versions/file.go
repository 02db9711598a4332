package versions

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/files"
)

// maxFile bounds a record, and a text, in bytes.
const maxFile = 16 << 20

var format = files.Record{Magic: "weirhist", Version: 1, Limit: maxFile}

func readRecord(path string) (r Record, err error) {
	if err := format.Read(path, &r); err != nil {
		return Record{}, err
	}
	for _, v := range r.Versions {
		if len(v.Sources) == 0 {
			return r, fmt.Errorf("it is damaged: version %s has no sources", v.ID)
		}
	}
	return r, nil
}

// readText returns the text of a source.
func readText(path string, src Source) (string, error) {
	b, err := files.Read(path, max(src.Size, 1))
	if err != nil {
		return "", err
	}
	if hash(string(b)) != src.Hash {
		return "", errors.New("it is damaged: its hash is wrong")
	}
	return string(b), nil
}
