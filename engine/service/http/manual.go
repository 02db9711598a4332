package http

import "github.com/weir-run/weir/engine/component"

var doc = component.Doc{
	Summary: "Configures TLS and authentication for weir's own port, which serves the page, the API and /metrics.\n\n" +
		"Arguments may refer to what components export, and files are read again when they change: new connections get the new certificate at once. " +
		"Until the certificate is available, no requests are served. If a new certificate is invalid, the last valid one stays in use. " +
		"A reload that would make the port plaintext again is refused.\n\n" +
		"Everyone who can connect may use /metrics, /-/ready, /-/healthy (how many nodes are not healthy), /api/v0/status (the names and the states of the nodes) and what components serve below /api/v0/component/. " +
		"The page, the whole status, batches, states, quarantines, reloads and profiles need credentials, which are accepted over TLS and from the machine that weir runs on: " +
		"the login that this block sets; or the token in the file weir.token of the storage directory, which only weir's user can read and which changes at every start, as 'Authorization: Bearer TOKEN'; " +
		"or the session that a link starts. 'weir run' prints a link on a terminal, and 'weir page' prints one at any time. A link works once, within 10 minutes; a session lasts 12 hours, until weir stops, or until 16 newer ones have started. " +
		"The socket weir.sock in the storage directory needs no credentials: only weir's user can open it. On Windows, both files have the permissions of the storage directory.\n\n" +
		"After 20 failed logins from one address, or one /64 network of IPv6, weir accepts one attempt in 6 seconds from it and answers others with 429; connections on which a login has succeeded are not affected. It remembers the failed logins of 1,024 addresses. " +
		"The port has at most 1,000 connections, and closes further ones at once. A request must arrive within 30 s, its header within 10 s; an answer may take any time, but a client that reads nothing of it for 30 s is disconnected. " +
		"weir_http_requests_refused_total and weir_http_limited_total count refused requests and limits that took effect.\n\n" +
		"Answers of components get the headers 'Content-Security-Policy: sandbox' and 'X-Content-Type-Options: nosniff', and lose headers that act on all of weir's address, such as Set-Cookie. Components do not see weir's credentials.",
	Args: map[string]string{
		"auth":                "Requires a user name and a password for TCP connections, but not for the control socket and prometheus.exporter.*. The token and links are accepted too. Over TLS, and from the machine that weir runs on, the login opens the page and the whole API.",
		"auth.basic":          "HTTP basic authentication.",
		"auth.basic.username": "The user name.",
		"auth.basic.password": "The password.",
		"auth.filter":         "The paths that require a password; without the block, all paths. Resources that need credentials need them on all paths.",
		"auth.filter.paths":   "Prefixes of paths.",
		"auth.filter.authenticate_matching_paths": "Whether the paths require a password (true) or are exempt (false).",
		"tls":                                   "Serves HTTPS instead of plaintext.",
		"tls.cert_pem":                          "The certificate, followed by its chain.",
		"tls.cert_file":                         "A file with the certificate.",
		"tls.key_pem":                           "The certificate's key.",
		"tls.key_file":                          "A file with the key.",
		"tls.client_ca_pem":                     "The CA certificates that must have signed the certificates of clients.",
		"tls.client_ca_file":                    "A file with the CA certificates.",
		"tls.client_auth_type":                  "The policy for client certificates: NoClientCert (the default), RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert.",
		"tls.cipher_suites":                     "Cipher suites for TLS 1.2 and below, by their IANA names; by default, the suites that Go considers secure.",
		"tls.curve_preferences":                 "CurveP256, CurveP384, CurveP521 or X25519, in order of preference; by default, the choice of Go.",
		"tls.min_version":                       "The lowest TLS version to accept: TLS10, TLS11, TLS12 or TLS13.",
		"tls.max_version":                       "The highest TLS version to accept.",
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
