"""Order statuses from the back office to the phones, while the broker is killed."""
