package http

import "github.com/weir-run/weir/engine/component"

var doc = component.Doc{
	Summary: "Protects weir's own port, which serves the page, the API and /metrics: with TLS, with a password.\n\n" +
		"Arguments may refer to what components export, and files are read again when they change: new connections get the new certificate at once. " +
		"While a certificate that the block asks for is not known, nobody is served; one that cannot be used leaves the last good one. " +
		"A reload that would make the port plaintext again is refused.",
	Args: map[string]string{
		"auth":                "Asks who comes over TCP for a name and a password; the control socket and prometheus.exporter.* are not asked.",
		"auth.basic":          "HTTP basic authentication.",
		"auth.basic.username": "Who may come.",
		"auth.basic.password": "What they must know.",
		"auth.filter":         "For which paths a password is asked; without the block, for all.",
		"auth.filter.paths":   "Beginnings of paths.",
		"auth.filter.authenticate_matching_paths": "Whether the paths are those that need a password (true) or those that do not (false).",
		"tls":                                   "Serves HTTPS instead of plaintext.",
		"tls.cert_pem":                          "The certificate, followed by those that lead to its authority.",
		"tls.cert_file":                         "A file with the certificate.",
		"tls.key_pem":                           "The certificate's key.",
		"tls.key_file":                          "A file with the key.",
		"tls.client_ca_pem":                     "The authorities that clients' certificates must be of.",
		"tls.client_ca_file":                    "A file with those authorities.",
		"tls.client_auth_type":                  "What is asked of clients: NoClientCert (if nothing is written), RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert.",
		"tls.cipher_suites":                     "Cipher suites for TLS 1.2 and below, by their IANA names; without it, those that Go thinks are secure.",
		"tls.curve_preferences":                 "CurveP256, CurveP384, CurveP521 or X25519, best first; without it, Go's choice.",
		"tls.min_version":                       "The oldest version that is spoken: TLS10, TLS11, TLS12 or TLS13.",
		"tls.max_version":                       "The newest version that is spoken.",
		"tls.windows_certificate_filter.client": "Not supported.",
		"tls.windows_certificate_filter.server": "Not supported.",
		"tls.windows_certificate_filter":        "Not supported: give the certificate with cert_file and key_file.",
	},
	Example: `http {
  tls {
    cert_pem = local.file.cert.content
    key_pem  = local.file.key.content
  }

  auth {
    basic {
      username = "weir"
      password = local.file.password.content
    }
  }
}
`,
}
