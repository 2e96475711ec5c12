"""What graphwright is built from: exact versions, lowest versions, licences, and the wheel that comes out."""
