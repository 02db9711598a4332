package remotewrite

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

// Blocks are split and joined without decoding their samples: a TimeSeries of
// remote write 1.0 is copied unchanged, and only the references to symbols change
// in one of 2.0.

// symbolTable contains the symbols of a request of remote write 2.0.
type symbolTable struct {
	strings []string // aliases the request
	hashes  []uint64
	size    int // in bytes
}

// errBlock is wrapped in the error of scan for a block that is not a valid
// request.
var errBlock = errors.New("cannot read a block")

// decompress returns the decompressed request in new memory.
func decompress(body []byte) ([]byte, error) {
	// Three bytes represent at most 64. A larger length is invalid, and there may
	// not be enough memory for it.
	if n, err := s2.DecodedLen(body); err == nil && n > 32*len(body) {
		return nil, fmt.Errorf("%d compressed bytes cannot be %d bytes", len(body), n)
	}
	return s2.Decode(nil, body)
}

// scan decompresses a request and calls f with each TimeSeries and a hash of its
// labels, which is the same in both messages. data aliases memory that is not
// written to again. table is nil for remote write 1.0.
func scan(body []byte, m message, f func(data []byte, hash uint64, table *symbolTable)) error {
	raw, err := decompress(body)
	if err != nil {
		return fmt.Errorf("%w: %w", errBlock, err)
	}
	if m == v1 {
		return eachField(raw, 1, func(data []byte) error {
			hash, err := hashLabels(data)
			if err == nil {
				f(data, hash, nil)
			}
			return err
		})
	}
	table := &symbolTable{}
	if err := eachField(raw, 4, func(s []byte) error {
		table.strings = append(table.strings, string(s))
		table.hashes = append(table.hashes, maphash.Bytes(seed, s))
		table.size += len(s) + 3
		return nil
	}); err != nil {
		return err
	}
	return eachField(raw, 5, func(data []byte) error {
		var hash uint64
		err := eachField(data, 1, func(refs []byte) error {
			return eachRef(refs, table, func(ref uint64) { hash = mix(hash, table.hashes[ref]) })
		})
		if err == nil {
			f(data, hash, table)
		}
		return err
	})
}

// eachField calls f with the content of each field with that number. The fields
// must have the wire type bytes.
func eachField(msg []byte, number protowire.Number, f func(content []byte) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return fmt.Errorf("%w: %w", errBlock, protowire.ParseError(n))
		}
		if num == number && typ == protowire.BytesType {
			content, size := protowire.ConsumeBytes(msg[n:])
			if size < 0 {
				return fmt.Errorf("%w: %w", errBlock, protowire.ParseError(size))
			}
			if err := f(content); err != nil {
				return err
			}
			msg = msg[n+size:]
			continue
		}
		size := protowire.ConsumeFieldValue(num, typ, msg[n:])
		if size < 0 {
			return fmt.Errorf("%w: %w", errBlock, protowire.ParseError(size))
		}
		msg = msg[n+size:]
	}
	return nil
}

// eachRef calls f with each symbol reference in a packed field.
func eachRef(refs []byte, table *symbolTable, f func(ref uint64)) error {
	for len(refs) > 0 {
		ref, n := protowire.ConsumeVarint(refs)
		if n < 0 || ref >= uint64(len(table.strings)) {
			return fmt.Errorf("%w: a reference to a symbol is not valid", errBlock)
		}
		f(ref)
		refs = refs[n:]
	}
	return nil
}

// hashLabels hashes the labels of a TimeSeries of remote write 1.0.
func hashLabels(series []byte) (hash uint64, err error) {
	err = eachField(series, 1, func(label []byte) error {
		// Name and value are always present, in this order.
		return errors.Join(
			eachField(label, 1, func(name []byte) error { hash = mix(hash, maphash.Bytes(seed, name)); return nil }),
			eachField(label, 2, func(value []byte) error { hash = mix(hash, maphash.Bytes(seed, value)); return nil }))
	})
	return hash, err
}

// seed is random, so that a sender of labels cannot choose their bins.
var seed = maphash.MakeSeed()

func mix(hash, next uint64) uint64 {
	return bits.RotateLeft64(hash^next, 27) * 0x9e3779b97f4a7c15
}

// merger joins the TimeSeries of several requests into one.
type merger struct {
	message message
	series  []byte

	// Of remote write 2.0 only:
	symbols []byte // encoded as fields of Request
	n       uint32 // number of symbols
	index   map[string]uint32
	refs    map[*symbolTable][]uint32 // by symbol: the reference in the new request, 0 if unknown or ""
	scratch []byte
	packed  []byte
}

func newMerger(m message) *merger {
	mg := &merger{message: m, series: getBuffer()}
	if m == v2 {
		mg.symbols, mg.n = append(getBuffer(), 0x22, 0), 1
		mg.index = map[string]uint32{"": 0}
		mg.refs = map[*symbolTable][]uint32{}
	}
	return mg
}

// add appends a TimeSeries that scan accepted.
func (mg *merger) add(data []byte, table *symbolTable) error {
	if mg.message == v1 {
		mg.series = append(appendUvarint(append(mg.series, 0x0a), uint64(len(data))), data...)
		return nil
	}
	refs := mg.refs[table]
	if refs == nil {
		refs = make([]uint32, len(table.strings))
		mg.refs[table] = refs
	}
	ref := func(old uint64) uint64 {
		s := table.strings[old]
		if refs[old] == 0 && s != "" {
			at, ok := mg.index[s]
			if !ok {
				at = mg.n
				mg.n++
				mg.index[s] = at
				mg.symbols = appendString(append(mg.symbols, 0x22), s)
			}
			refs[old] = at
		}
		return uint64(refs[old])
	}
	body := mg.scratch[:0]
	err := mg.each(data, func(num protowire.Number, field, content []byte) (err error) {
		switch num {
		case 1:
			body, err = mg.appendRefs(body, content, table, ref)
		case 4: // exemplar
			var exemplar []byte
			err = mg.each(content, func(num protowire.Number, field, content []byte) (err error) {
				if num == 1 {
					exemplar, err = mg.appendRefs(exemplar, content, table, ref)
				} else {
					exemplar = append(exemplar, field...)
				}
				return err
			})
			body = protowire.AppendBytes(append(body, 0x22), exemplar)
		case 5: // metadata
			var meta []byte
			err = mg.each(content, func(num protowire.Number, field, _ []byte) error {
				if num == 3 || num == 4 {
					old, n := protowire.ConsumeVarint(field[1:])
					if n < 0 || old >= uint64(len(table.strings)) {
						return fmt.Errorf("%w: a reference to a symbol is not valid", errBlock)
					}
					meta = protowire.AppendVarint(append(meta, field[0]), ref(old))
				} else {
					meta = append(meta, field...)
				}
				return nil
			})
			body = protowire.AppendBytes(append(body, 0x2a), meta)
		default:
			body = append(body, field...)
		}
		return err
	})
	mg.scratch = body
	if err == nil {
		mg.series = protowire.AppendBytes(append(mg.series, 0x2a), body)
	}
	return err
}

// appendRefs appends field 1 of a message, which contains references to symbols.
func (mg *merger) appendRefs(dst, old []byte, table *symbolTable, ref func(uint64) uint64) ([]byte, error) {
	packed := mg.packed[:0]
	err := eachRef(old, table, func(r uint64) { packed = protowire.AppendVarint(packed, ref(r)) })
	mg.packed = packed
	return protowire.AppendBytes(append(dst, 0x0a), packed), err
}

// each calls f with each field of a message: the whole field, and its content if
// it has the wire type bytes.
func (*merger) each(msg []byte, f func(num protowire.Number, field, content []byte) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeField(msg)
		if n < 0 {
			return fmt.Errorf("%w: %w", errBlock, protowire.ParseError(n))
		}
		var content []byte
		if typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(msg)
			content, _ = protowire.ConsumeBytes(msg[tag:])
		}
		if err := f(num, msg[:n], content); err != nil {
			return err
		}
		msg = msg[n:]
	}
	return nil
}

// close returns the compressed request.
func (mg *merger) close() []byte {
	raw := mg.series
	if mg.message == v2 {
		raw = append(mg.symbols, mg.series...) // receivers may decode in a single pass, so the symbols come first
		putBuffer(mg.series)
	}
	defer func() { putBuffer(raw) }()
	return compress(nil, raw)
}
