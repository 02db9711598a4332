package syslog

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/engine/server"
)

// Arguments of loki.source.syslog.
type Arguments struct {
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Rules that set labels from the properties of a message. The properties are
	// available as labels that begin with "__syslog_" and are dropped after the rules:
	// the `rules` of a loki.relabel or prometheus.relabel.
	RelabelRules rule.Rules `alloy:"relabel_rules,attr,optional"`
	// Addresses on which messages are received.
	Listeners []*Listener `alloy:"listener,block,optional"`
}

// The formats of messages.
const (
	rfc5424Format = "rfc5424"
	rfc3164Format = "rfc3164"
	rawFormat     = "raw"
)

// Listener is an address on which messages are received.
type Listener struct {
	// Address to listen on, as host:port.
	Address string `alloy:"address,attr"`
	// "tcp" or "udp". With UDP, messages are lost if weir is not running or if they
	// arrive faster than the receivers accept them. With TCP, the sender waits.
	Protocol string `alloy:"protocol,attr,optional"`
	// Message format: "rfc5424", "rfc3164", or "raw", which parses only the priority in
	// front of the text.
	Format string `alloy:"syslog_format,attr,optional"`
	// A TCP connection is closed if it is idle for this time; 0s means 120s.
	IdleTimeout time.Duration `alloy:"idle_timeout,attr,optional"`
	// Whether structured data becomes labels for relabel_rules, such as
	// __syslog_message_sd_example_99999_test for [example@99999 test="yes"].
	LabelStructuredData bool `alloy:"label_structured_data,attr,optional"`
	// Labels of all lines of the listener.
	Labels map[string]string `alloy:"labels,attr,optional"`
	// Maximum size of a message in bytes; longer messages are truncated and counted. 0
	// means 8192.
	MaxMessageLength int `alloy:"max_message_length,attr,optional"`
	// Whether lines keep the time in the message. Otherwise, they get their time of
	// arrival.
	UseIncomingTimestamp bool `alloy:"use_incoming_timestamp,attr,optional"`
	// Whether the line is the complete message instead of its text only (rfc5424).
	UseRFC5424Message bool `alloy:"use_rfc5424_message,attr,optional"`
	// Whether a message without text becomes an empty line (rfc5424). Otherwise, it is
	// dropped.
	RFC5424AllowEmpty bool `alloy:"rfc5424_allow_empty_msg,attr,optional"`
	// Whether a timestamp without a year is assigned to the current year, or to the
	// previous year if it would be months in the future (rfc3164). Otherwise, such a
	// timestamp is ignored.
	RFC3164CurrentYear bool `alloy:"rfc3164_default_to_current_year,attr,optional"`
	// Maximum number of concurrent connections (tcp); further connections are closed
	// immediately and counted. 0 is no limit.
	MaxConnections int `alloy:"max_connections,attr,optional"`
	// Maximum number of 64 KiB blocks of datagrams that wait for the receivers (udp). If
	// all blocks are full, further datagrams are dropped and counted.
	UDPQueueSize int `alloy:"udp_queue_size,attr,optional"`
	// Maximum number of sender host names in the cache (udp).
	UDPHostCacheSize int `alloy:"udp_host_cache_size,attr,optional"`
	// TLS settings (tcp). Without this block, messages are received unencrypted. A
	// listener that was started with TLS does not change back to unencrypted.
	TLS *TLS `alloy:"tls_config,block,optional"`
	// Settings of the format raw.
	Raw *Raw `alloy:"raw_format_options,block,optional"`
	// Fields that Cisco IOS writes in front of the timestamp. They must match the
	// configuration of the device (rfc3164).
	Cisco *Cisco `alloy:"rfc3164_cisco_components,block,optional"`
}

// Raw are options of the format raw.
type Raw struct {
	// Whether messages without a length end with a zero byte instead of a newline.
	Null bool `alloy:"use_null_terminator_delimiter,attr,optional"`
}

// Cisco selects the fields that a Cisco IOS device writes.
type Cisco struct {
	// All fields.
	EnableAll bool `alloy:"enable_all,attr,optional"`
	// A message counter.
	MessageCounter bool `alloy:"message_counter,attr,optional"`
	// A sequence number.
	SequenceNumber bool `alloy:"sequence_number,attr,optional"`
	// A host name.
	Hostname bool `alloy:"hostname,attr,optional"`
	// Fractions of a second in the timestamp.
	SecondFractions bool `alloy:"second_fractions,attr,optional"`
}

// TLS are the TLS settings of a listener.
type TLS struct {
	// Certificate of the listener, as PEM text, optionally followed by its chain.
	Cert string `alloy:"cert_pem,attr,optional"`
	// Key of the certificate, as PEM text.
	Key component.Secret `alloy:"key_pem,attr,optional"`
	// File with the certificate, a regular file of at most 1 MiB; it is read again when it changes.
	CertFile string `alloy:"cert_file,attr,optional"`
	// File with the key, a regular file of at most 1 MiB; it is read again when it changes.
	KeyFile string `alloy:"key_file,attr,optional"`
	// CA certificates, as PEM text. If they are set, senders must present a certificate
	// that one of them signed.
	CA string `alloy:"ca_pem,attr,optional"`
	// File with such CA certificates, a regular file of at most 1 MiB.
	CAFile string `alloy:"ca_file,attr,optional"`
	// Lowest TLS version to accept: TLS10, TLS11, TLS12 (the default) or TLS13.
	MinVersion string `alloy:"min_version,attr,optional"`
	// Not allowed: it is a setting for clients.
	ServerName string `alloy:"server_name,attr,optional"`
	// Not allowed: it is a setting for clients.
	InsecureSkipVerify bool `alloy:"insecure_skip_verify,attr,optional"`
}

// SetToDefault sets Alloy's defaults, and a limit for connections, which Alloy
// does not have.
func (l *Listener) SetToDefault() {
	*l = Listener{
		Protocol: "tcp", Format: rfc5424Format, IdleTimeout: 2 * time.Minute, MaxMessageLength: 8192, MaxConnections: 1000,
		UDPQueueSize: 10, UDPHostCacheSize: 128,
	}
}

// Validate returns all errors in the arguments. The config language validates
// their blocks.
func (a *Arguments) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for _, l := range a.Listeners {
		// Port 0 stands for a different port each time.
		if _, port, _ := net.SplitHostPort(l.Address); seen[l.key()] && port != "0" {
			errs = append(errs, fmt.Errorf("two listeners have the address %s over %s: remove one, or choose another port", l.Address, l.Protocol))
		}
		seen[l.key()] = true
	}
	return errors.Join(errs...)
}

// key identifies a listener across reloads.
func (l *Listener) key() string { return l.Protocol + " " + l.Address }

// maxLength is the maximum of max_message_length.
const maxLength = 16 << 20

// Validate returns all errors in the block, joined.
func (l *Listener) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, _, err := net.SplitHostPort(l.Address); err != nil {
		add(`address is %q, must be host:port, such as "0.0.0.0:514"`, l.Address)
	}
	if l.Protocol != "tcp" && l.Protocol != "udp" {
		add(`protocol must be "tcp" or "udp", not %q`, l.Protocol)
	}
	if !slices.Contains([]string{rfc5424Format, rfc3164Format, rawFormat}, l.Format) {
		add(`syslog_format must be "rfc5424", "rfc3164" or "raw", not %q`, l.Format)
	}
	if l.IdleTimeout < 0 {
		add("idle_timeout is %s, must not be negative", l.IdleTimeout)
	}
	if l.MaxMessageLength < 0 || l.MaxMessageLength > maxLength {
		add("max_message_length is %d, must be 1 to %d, or 0 for 8192", l.MaxMessageLength, maxLength)
	}
	if l.MaxConnections < 0 {
		add("max_connections is %d, must not be negative", l.MaxConnections)
	}
	if l.UDPQueueSize <= 0 || l.UDPQueueSize > 1<<14 {
		add("udp_queue_size is %d, must be 1 to 16384", l.UDPQueueSize)
	}
	if l.UDPHostCacheSize <= 0 {
		add("udp_host_cache_size is %d, must be greater than 0", l.UDPHostCacheSize)
	}
	for name := range l.Labels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			add("labels: %q is not a valid label name", name)
		}
	}
	if l.Protocol == "udp" && l.TLS != nil {
		add("tls_config has no effect on UDP: remove it, or set protocol = \"tcp\"")
	}
	return errors.Join(append(errs, l.validateFormat())...)
}

// validateFormat returns errors for arguments that the format does not have.
func (l *Listener) validateFormat() error {
	var errs []error
	only := func(set bool, name string, formats ...string) {
		if set && !slices.Contains(formats, l.Format) {
			errs = append(errs, fmt.Errorf("%s has no effect when syslog_format is %q: it is for %s", name, l.Format, strings.Join(formats, " and ")))
		}
	}
	only(l.UseRFC5424Message, "use_rfc5424_message", rfc5424Format)
	only(l.RFC5424AllowEmpty, "rfc5424_allow_empty_msg", rfc5424Format)
	only(l.LabelStructuredData, "label_structured_data", rfc5424Format)
	only(l.RFC3164CurrentYear, "rfc3164_default_to_current_year", rfc3164Format)
	only(l.UseIncomingTimestamp, "use_incoming_timestamp", rfc5424Format, rfc3164Format)
	only(l.Raw != nil, "raw_format_options", rawFormat)
	only(l.Cisco != nil, "rfc3164_cisco_components", rfc3164Format)
	return errors.Join(errs...)
}

// Warnings reports arguments that have no effect.
func (l *Listener) Warnings() []string {
	if l.Format == rfc3164Format && l.UseIncomingTimestamp && !l.RFC3164CurrentYear {
		return []string{"use_incoming_timestamp has no effect on timestamps without a year, which those of rfc3164 are: set rfc3164_default_to_current_year = true"}
	}
	return nil
}

// Validate returns all errors in the block.
func (c *Cisco) Validate() error {
	if *c == (Cisco{}) {
		return errors.New("nothing in it is true: set what the device writes, or enable_all")
	}
	return nil
}

// Validate returns all errors in the block, joined.
func (t *TLS) Validate() error {
	var errs []error
	if t.ServerName != "" {
		errs = append(errs, errors.New("server_name is for clients, remove it: senders verify the listener's name"))
	}
	if t.InsecureSkipVerify {
		errs = append(errs, errors.New("insecure_skip_verify is for clients, remove it: without ca_pem and ca_file senders are not verified"))
	}
	if t.CA != "" && t.CAFile != "" {
		errs = append(errs, errors.New("at most one of ca_pem and ca_file may be set"))
	}
	if _, ok := tlsVersions[t.MinVersion]; !ok {
		errs = append(errs, fmt.Errorf("min_version must be TLS10, TLS11, TLS12 or TLS13, not %q", t.MinVersion))
	} else if err := t.server().Validate(); err != nil && len(errs) == 0 {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

var tlsVersions = map[string]uint16{
	"": 0, "TLS10": tls.VersionTLS10, "TLS11": tls.VersionTLS11, "TLS12": tls.VersionTLS12, "TLS13": tls.VersionTLS13,
}

// server returns the TLS settings of engine/server. The result for nil is nil.
func (t *TLS) server() *server.TLS {
	if t == nil {
		return nil
	}
	s := &server.TLS{Cert: t.Cert, Key: t.Key, CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCA: t.CA, ClientCAFile: t.CAFile, MinVersion: t.MinVersion}
	if t.CA != "" || t.CAFile != "" {
		s.ClientAuthType = "RequireAndVerifyClientCert"
	}
	return s
}

func (l *Listener) idleTimeout() time.Duration { return cmp.Or(l.IdleTimeout, 2*time.Minute) }

func (l *Listener) maxLength() int { return cmp.Or(l.MaxMessageLength, 8192) }
