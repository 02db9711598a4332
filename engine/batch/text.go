package batch

import "strconv"

// AppendSeries appends a series in text form: name{label="value",…}.
func AppendSeries(dst []byte, s *Series) []byte {
	dst = append(dst, s.Name()...)
	sep := byte('{')
	for n, v := range s.Labels() {
		if n == NameLabel {
			continue
		}
		dst = append(dst, sep)
		dst = append(dst, n...)
		dst = append(dst, '=')
		dst = strconv.AppendQuote(dst, v)
		sep = ','
	}
	if sep == ',' {
		dst = append(dst, '}')
	}
	return dst
}
