"""The non-private minimiser and its certificate: cone programs, interior point, first order."""
