"""Where a request's scope holds its span, for routes that know more about it; there is none unless tracing is on."""

SPAN = "pagefile.span"
#: The span's name, where it is not the route's.
SPAN_NAME = "pagefile.span_name"
