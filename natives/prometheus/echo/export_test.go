package echo

// RegistrationTo describes a prometheus.echo that prints to a writer.
var RegistrationTo = registration
