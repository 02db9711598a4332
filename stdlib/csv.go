package stdlib

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/scripting"
)

// csvModule implements RFC 4180.
func csvModule() *scripting.Module {
	separator := scripting.Param{Name: "separator", Kind: scripting.KindString, Optional: true, Doc: `The field separator, one character; "," by default.`}
	return &scripting.Module{
		Name: "csv",
		Doc:  "CSV as defined in RFC 4180, also with other separators. At most 500,000 fields.",
		Funcs: []scripting.Function{
			{
				Name: "decode", Doc: "Decodes CSV. Fields are strings. Empty lines and a byte order mark at the beginning are ignored.",
				Params: []scripting.Param{
					text("s", "The CSV text."),
					{Name: "options", Kind: scripting.KindMap, Optional: true, Doc: "How.", Fields: []scripting.Param{
						separator,
						{Name: "header", Kind: scripting.KindBool, Optional: true, Doc: "Use the first row as the names of the fields; the other rows become maps. All rows must have the same length."},
						{Name: "comment", Kind: scripting.KindString, Optional: true, Doc: "Ignore lines that begin with this character."},
						{Name: "trim", Kind: scripting.KindBool, Optional: true, Doc: "Ignore white space in front of fields."},
						{Name: "lazy_quotes", Kind: scripting.KindBool, Optional: true, Doc: "Allow a quote inside an unquoted field."},
					}},
				},
				Result: scripting.Result{Kind: scripting.KindList, Doc: "The rows: lists, or maps by the field names of the header.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					opts, _ := a[1].(*scripting.Map)
					return decodeCSV(a[0].(string), opts)
				},
				Examples: []scripting.FunctionExample{
					ex(list(list("a", "1"), list(`b "x"`, "2,5")), "a,1\n\"b \"\"x\"\"\",\"2,5\"\n"),
					ex(list(mapOf("host", "web-1", "zone", "eu")), "host;zone\nweb-1;eu", mapOf("header", true, "separator", ";")),
					{Args: []scripting.Value{"a,b\n1", mapOf("header", true)}, Err: "line 2: wrong number of fields"},
					{Args: []scripting.Value{`"a`}, Err: `line 1, column 3: extraneous or missing " in quoted-field`},
				},
			},
			{
				Name: "encode", Doc: "Encodes rows as CSV. Fields are quoted where necessary.",
				Params: []scripting.Param{
					{Name: "rows", Kind: scripting.KindList, Doc: "The rows: lists of strings, numbers, booleans and null, or, with a header, maps.", Of: &scripting.Param{Kind: scripting.KindAny}},
					{Name: "options", Kind: scripting.KindMap, Optional: true, Doc: "How.", Fields: []scripting.Param{
						separator,
						{Name: "header", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Optional: true, Doc: "The field names. They become the first row and select the values of maps."},
					}},
				},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The CSV text; each row ends with a line feed.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					opts, _ := a[1].(*scripting.Map)
					return encodeCSV(a[0].(*scripting.List), opts)
				},
				Examples: []scripting.FunctionExample{
					ex("a,\"b,c\",1.5,\n", list(list("a", "b,c", 1.5, scripting.Null))),
					ex("host,zone\nweb-1,eu\n", list(mapOf("zone", "eu", "host", "web-1")), mapOf("header", list("host", "zone"))),
					{Args: []scripting.Value{list(list(list()))}, Err: "row 1: it is not a string, a number or a boolean"},
				},
			},
		},
	}
}

// character returns an option that is one character, or 0 if it is not set.
func character(opts *scripting.Map, name string) (rune, error) {
	if opts == nil {
		return 0, nil
	}
	v, _ := opts.Get(name)
	s, ok := v.(string)
	if !ok {
		return 0, nil
	}
	r, n := utf8.DecodeRuneInString(s)
	if n != len(s) || r == '"' || r == '\r' || r == '\n' || r == utf8.RuneError {
		return 0, fmt.Errorf("%s must be one character other than a quote or a line feed", name)
	}
	return r, nil
}

func flag(opts *scripting.Map, name string) bool {
	if opts == nil {
		return false
	}
	v, _ := opts.Get(name)
	return v == true
}

func decodeCSV(s string, opts *scripting.Map) (scripting.Value, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(s, "\ufeff")))
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace, r.LazyQuotes = flag(opts, "trim"), flag(opts, "lazy_quotes")
	separator, err := character(opts, "separator")
	if err == nil {
		r.Comment, err = character(opts, "comment")
	}
	if separator != 0 {
		r.Comma = separator
	}
	if err == nil && r.Comment == r.Comma {
		err = errors.New("separator and comment are the same")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decode CSV: %w", err)
	}
	var header []string
	if flag(opts, "header") {
		r.FieldsPerRecord = 0
		switch header, err = r.Read(); {
		case err == io.EOF:
			return list(), nil
		case err != nil:
			return nil, csvError(err)
		}
		seen := map[string]bool{}
		for _, name := range header {
			if seen[name] {
				return nil, fmt.Errorf("cannot decode CSV: the header has %q twice", truncate(name, 40, "…"))
			}
			seen[name] = true
		}
	}
	rows, fields := list(), 0
	for {
		row, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, csvError(err)
		}
		for i, field := range row { // the fields are parts of one text
			row[i] = scripting.Part(field, s)
		}
		if fields += len(row); fields > maxValues {
			return nil, fmt.Errorf("cannot decode CSV: there are more than %d fields", maxValues)
		}
		if header == nil {
			rows.Items = append(rows.Items, stringList(row))
			continue
		}
		m := scripting.NewMap()
		for i, name := range header {
			m.Set(name, row[i])
		}
		rows.Items = append(rows.Items, m)
	}
}

func csvError(err error) error {
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		if e.Err == csv.ErrFieldCount {
			return fmt.Errorf("cannot decode CSV: line %d: %w", e.Line, e.Err)
		}
		return fmt.Errorf("cannot decode CSV: line %d, column %d: %w", e.Line, e.Column, e.Err)
	}
	return fmt.Errorf("cannot decode CSV: %w", err)
}

func encodeCSV(rows *scripting.List, opts *scripting.Map) (scripting.Value, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	separator, err := character(opts, "separator")
	if err != nil {
		return nil, fmt.Errorf("cannot encode CSV: %w", err)
	}
	if separator != 0 {
		w.Comma = separator
	}
	var header []string
	if opts != nil {
		if v, ok := opts.Get("header"); ok && v != nil {
			header = []string{}
			for _, name := range v.(*scripting.List).Items {
				header = append(header, name.(string))
			}
		}
	}
	write := func(row []string) error {
		switch {
		case len(row) == 0:
			return errors.New("it has no fields")
		case len(row) == 1 && row[0] == "":
			// The library writes an empty line, which is not a row.
			w.Flush()
			b.WriteString("\"\"\n")
			return nil
		}
		return w.Write(row)
	}
	if header != nil {
		if err := write(header); err != nil {
			return nil, fmt.Errorf("cannot encode CSV: the header: %w", err)
		}
	}
	for i, item := range rows.Items {
		row, err := csvRow(item, header)
		if err == nil {
			err = write(row)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot encode CSV: row %d: %w", i+1, err)
		}
		if b.Len() > scripting.MaxString {
			return nil, errLong("encode CSV")
		}
	}
	w.Flush()
	if b.Len() > scripting.MaxString {
		return nil, errLong("encode CSV")
	}
	return b.String(), nil
}

// csvRow returns the fields of one row.
func csvRow(item scripting.Value, header []string) ([]string, error) {
	var values []scripting.Value
	switch item := item.(type) {
	case *scripting.List:
		if header != nil && len(item.Items) != len(header) {
			return nil, fmt.Errorf("it has %d fields, but the header has %d", len(item.Items), len(header))
		}
		values = item.Items
	case *scripting.Map:
		if header == nil {
			return nil, errors.New("it is a map: name the fields in the option header")
		}
		for _, name := range header {
			v, _ := item.Get(name)
			values = append(values, v)
		}
	default:
		return nil, errors.New("it is neither a list nor a map")
	}
	row, size := make([]string, len(values)), 0
	for i, v := range values {
		if v == nil {
			continue
		}
		var err error
		if row[i], err = plainText(v); err != nil {
			return nil, err
		}
		if size += len(row[i]) + 1; size > scripting.MaxString {
			return nil, errLong("encode it")
		}
	}
	return row, nil
}
