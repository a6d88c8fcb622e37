package contract

import (
	"crypto/sha1"

	"github.com/google/uuid"
)

// Message is something one service says to the others about one transfer, before it is put into an envelope.
type Message struct {
	ID   uuid.UUID // the envelope's messageId
	Type string
	Data Data
}

// Say makes the message of a type about a transfer. Its id follows from transfer and type, see messageID: a transfer goes through each
// step at most once, so whoever has to say the same thing again, because it was asked again, says it under the same id, and the
// reader's inbox absorbs it.
func Say(transfer uuid.UUID, messageType string, data Data) Message {
	data.TransferID = Some(transfer.String())
	return Message{ID: messageID(transfer, messageType), Type: messageType, Data: data}
}

// messageID derives the id of a message. It is a UUIDv8: it begins with the first 48 bits of the transfer's id, which are the time when
// that is a UUIDv7, and the rest is a hash of transfer and type, as in a UUIDv5. So ids of one moment are neighbours in
// every inbox's index. Ids that are all hash would each touch a page of their own: in a table of millions that is a page to read,
// and, after each checkpoint, a whole page in the log.
func messageID(transfer uuid.UUID, messageType string) uuid.UUID {
	id := uuid.NewHash(sha1.New(), transfer, []byte(messageType), 8)
	copy(id[:6], transfer[:6])
	return id
}
