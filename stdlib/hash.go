package stdlib

import (
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // checksums of others are made with it
	"crypto/sha1" //nolint:gosec // the same
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/scripting"
)

var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New,
}

func hashModule() *scripting.Module {
	s := text("s", "The text.")
	form := scripting.Param{Name: "encoding", Kind: scripting.KindString, Doc: `"hex" (the default), "base64" or "raw".`, Optional: true}
	result := scripting.Result{Kind: scripting.KindString, Doc: "The hash.", Fails: true}
	of := func(name, doc string, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{s, form}, Result: result, Examples: es,
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				h := hashes[name]()
				h.Write([]byte(a[0].(string)))
				return encodeHash(h.Sum(nil), a[1])
			}}
	}
	return &scripting.Module{
		Name: "hash",
		Doc:  "Hash functions for strings.",
		Funcs: []scripting.Function{
			of("sha256", "Returns the SHA-256 hash.", ex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc"),
				ex("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "abc", "base64"), scripting.FunctionExample{Args: []scripting.Value{"abc", "oct"}, Err: "cannot use encoding"}),
			of("sha512", "Returns the SHA-512 hash.", ex("cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e", "")),
			of("sha1", "Returns the SHA-1 hash, for compatibility with existing data.", ex("a9993e364706816aba3e25717850c26c9cd0d89d", "abc")),
			of("md5", "Returns the MD5 hash, for compatibility with existing data.", ex("900150983cd24fb0d6963f7d28e17f72", "abc")),
			{
				Name: "hmac", Doc: "Returns the keyed hash (HMAC) of a string, as used to sign requests.",
				Params: []scripting.Param{
					text("algorithm", "sha256, sha512, sha1 or md5."),
					{Name: "key", Kind: scripting.KindAny, Doc: "The key: a string, or a secret such as ctx.args.token."},
					s, form,
				},
				Result: result,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					newHash, ok := hashes[a[0].(string)]
					if !ok {
						return nil, fmt.Errorf("cannot use hash %q: it must be sha256, sha512, sha1 or md5", truncate(a[0].(string), 40, "…"))
					}
					var key string
					switch k := a[1].(type) {
					case string:
						key = k
					case scripting.Secret:
						key = k.Reveal()
					default:
						return nil, &scripting.ArgError{Func: "hmac", Param: "key", Msg: "must be a string or a secret"}
					}
					h := hmac.New(newHash, []byte(key))
					h.Write([]byte(a[2].(string)))
					return encodeHash(h.Sum(nil), a[3])
				},
				Examples: []scripting.FunctionExample{
					ex("f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", "sha256", "key", "The quick brown fox jumps over the lazy dog"),
					{Args: []scripting.Value{"crc", "key", "s"}, Err: "cannot use hash"},
				},
			},
			{
				Name: "xxhash", Doc: "Returns the 64-bit xxHash (XXH64). It is fast, but not cryptographically secure.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "16 hexadecimal digits."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return fmt.Sprintf("%016x", xxhash.Sum64String(a[0].(string))), nil
				},
				Examples: []scripting.FunctionExample{ex("44bc2cf5ad770999", "abc"), ex("ef46db3751d8e999", "")},
			},
			{
				Name: "crc32", Doc: "Returns the CRC-32 checksum (IEEE), as used by zip and Ethernet.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "0 to 4294967295."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return int64(crc32.ChecksumIEEE([]byte(a[0].(string)))), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(0xcbf43926), "123456789")},
			},
			{
				Name: "bucket", Doc: "Assigns a string to one of n buckets, always the same one. Use it to sample traces, users or hosts, such as one in ten.",
				Params: []scripting.Param{s, {Name: "n", Kind: scripting.KindInt, Doc: "The number of buckets."}},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "0 to n-1.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					n := a[1].(int64)
					if n < 1 {
						return nil, fmt.Errorf("cannot make %d buckets", n)
					}
					return int64(xxhash.Sum64String(a[0].(string)) % uint64(n)), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(0), "abc", int64(1)), ex(int64(9), "abc", int64(10)), {Args: []scripting.Value{"abc", int64(0)}, Err: "cannot make 0"}},
			},
		},
	}
}

func encodeHash(sum []byte, encoding scripting.Value) (scripting.Value, error) {
	switch encoding {
	case nil, "hex":
		return hex.EncodeToString(sum), nil
	case "base64":
		return base64.StdEncoding.EncodeToString(sum), nil
	case "raw":
		return string(sum), nil
	}
	return nil, fmt.Errorf("cannot use encoding %q: it must be hex, base64 or raw", truncate(encoding.(string), 40, "…"))
}
